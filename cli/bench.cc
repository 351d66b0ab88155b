// regard bench: how fast attention is here, beside other libraries. The rows are in bench/rows.cc.
#include <fmt/format.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/machine.h"
#include "bench/rows.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/text.h"
#include "engine/base/error.h"
#include "regard/attention.h"
#include "train/progress.h"

namespace regard::cli {
namespace {

using bench::Outcome;
using bench::Row;
using nlohmann::ordered_json;

struct BenchOptions {
  Common common;
  std::vector<std::string> rows;
  std::int64_t runs = 7;
  bool json = false, list = false, no_check = false;
};

struct Machine {
  std::string processor;
  int threads = 0;
  double fma_peak = 0, bandwidth = 0;  // operations and bytes a second
};

double Rate(const Outcome& o) { return o.work / o.time.ours.median; }
double Share(const Outcome& o) { return Rate(o) / o.fma_peak; }
double BandwidthShare(const Outcome& o) { return o.bytes / o.time.ours.median / o.bandwidth; }

bool WithinContract(const Outcome& o) {
  return std::all_of(o.errors.begin(), o.errors.end(), [](const auto& e) { return e.within_contract(); });
}

// The largest of an error over the tensors that have it; none where none has.
template <typename F>
std::optional<double> Largest(const Outcome& o, const F& error) {
  std::optional<double> largest;
  for (const bench::TensorError& e : o.errors) {
    const std::optional<double> one = error(e);
    if (one && *one >= largest.value_or(0)) largest = one;
  }
  return largest;
}
std::optional<double> OurError(const Outcome& o) {
  return Largest(o, [](const auto& e) { return std::optional(e.ours); });
}
std::optional<double> PeerError(const Outcome& o) {
  return Largest(o, [](const auto& e) { return e.peer; });
}

bool Reaches(const Row& row, const Outcome& o) {
  return o.time.ratio.median >= row.wanted.ratio && Share(o) >= row.wanted.share &&
         (row.wanted.bandwidth == 0 || BandwidthShare(o) >= row.wanted.bandwidth) &&
         (row.wanted.memory == 0 || o.memory < row.wanted.memory);
}

bool HasTarget(const bench::Wanted& w) {
  return w.ratio > 0 || w.share > 0 || w.bandwidth > 0 || w.memory > 0;
}

ordered_json QuartilesJson(const bench::Quartiles& q) { return {q.low, q.median, q.high}; }

ordered_json RowJson(const Row& row, const Outcome& o) {
  ordered_json json{{"name", row.name},
                    {"what", Describe(row.spec)},
                    {"through", row.through == bench::Through::kOp ? "op" : "engine"},
                    {"peer", PeerName(row)},
                    {"seconds", o.time.ours.median},
                    {"peer_seconds", o.time.peer.median},
                    {"seconds_quartiles", QuartilesJson(o.time.ours)},
                    {"peer_seconds_quartiles", QuartilesJson(o.time.peer)},
                    {"ratio", o.time.ratio.median},
                    {"ratio_quartiles", QuartilesJson(o.time.ratio)},
                    {"gflops", Rate(o) / 1e9},
                    {"fma_peak_gflops", o.fma_peak / 1e9},
                    {"share", Share(o)}};
  if (row.wanted.bandwidth > 0) {
    json["read_bandwidth_gbytes"] = o.bandwidth / 1e9;
    json["bandwidth_share"] = BandwidthShare(o);
  }
  if (row.wanted.memory > 0) json["memory"] = o.memory, json["peer_memory"] = o.peer_memory;
  if (const auto error = OurError(o)) json["error"] = *error;
  if (const auto error = PeerError(o)) json["peer_error"] = *error;
  for (const bench::TensorError& e : o.errors) {
    ordered_json& errors = json["errors"][e.name];
    errors["ours"] = e.ours;
    if (e.peer) errors["peer"] = *e.peer;
    if (e.written) errors["written_out"] = *e.written;
  }
  if (!o.errors.empty()) json["within_contract"] = WithinContract(o);
  if (o.same_bits) json["same_bits"] = *o.same_bits;
  if (HasTarget(row.wanted)) {
    ordered_json& wanted = json["wanted"];
    if (row.wanted.ratio > 0) wanted["ratio"] = row.wanted.ratio;
    if (row.wanted.share > 0) wanted["share"] = row.wanted.share;
    if (row.wanted.bandwidth > 0) wanted["bandwidth_share"] = row.wanted.bandwidth;
    if (row.wanted.memory > 0) wanted["memory"] = row.wanted.memory;
    json["reached"] = Reaches(row, o);
  }
  return json;
}

ordered_json MachineJson(const Machine& machine) {
  return {{"processor", machine.processor},
          {"threads", machine.threads},
          {"instruction_set", InstructionSet()},
          {"pytorch", TORCH_VERSION},
          {"pytorch_instruction_set", at::get_cpu_capability()},
          {"fma_peak_gflops", machine.fma_peak / 1e9},
          {"read_bandwidth_gbytes", machine.bandwidth / 1e9}};
}

// Three digits.
std::string Time(double seconds) {
  const auto [value, unit] = seconds < 1e-3  ? std::pair(seconds * 1e6, "µs")
                             : seconds < 1.0 ? std::pair(seconds * 1e3, "ms")
                                             : std::pair(seconds, "s ");
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
}

std::string Ratio(double ratio) {
  return fmt::format("{:.{}f}", ratio, ratio < 10 ? 2 : ratio < 100 ? 1 : 0);
}

std::string Judged(const std::string& text, double value, double wanted) {
  if (wanted == 0) return text;
  return Paint(value >= wanted ? Style::kGreen : Style::kRed, text, stdout);
}

void PrintHead(const Machine& machine, Output& out) {
  out.Print("{}, {}; regard on {}, PyTorch {} on {}\n", machine.processor, Count(machine.threads, "thread"),
            InstructionSet(), TORCH_VERSION, at::get_cpu_capability());
  out.Print("multiply-adds {:.0f} GFLOP/s, reading {:.1f} GB/s\n\n", machine.fma_peak / 1e9,
            machine.bandwidth / 1e9);
  const std::string head =
      fmt::format("{:<23} {:>8} {:>8} {:>6} {:>13} {:>6} {:>8} {:>9} {:>8} {:>8} {}", "row", "regard", "peer",
                  "ratio", "(quartiles)", "wanted", "GFLOP/s", "of peak", "error", "peer's", "bits");
  out.Print("{}\n", Paint(Style::kBold, head, stdout));
  out.Flush();
}

std::string PeakCell(const Row& row, const Outcome& o) {
  const bool reading = row.wanted.bandwidth > 0;
  const double share = reading ? BandwidthShare(o) : Share(o);
  const double wanted = reading ? row.wanted.bandwidth : row.wanted.share;
  std::string text = fmt::format("{:.2f}{}", share, reading ? " r" : "");
  if (wanted > 0) text += fmt::format("/{:.2f}", wanted);
  return Judged(fmt::format("{:>9}", text), share, wanted);
}

void PrintRow(const Row& row, const Outcome& o, Output& out) {
  const bench::Quartiles& ratio = o.time.ratio;
  std::string line = fmt::format(
      "{:<23} {:>8} {:>8} {} {:>13} {:>6} {:>8.0f} {}", row.name, Time(o.time.ours.median),
      Time(o.time.peer.median),
      Judged(fmt::format("{:>6}", Ratio(ratio.median)), ratio.median, row.wanted.ratio),
      fmt::format("({}-{})", Ratio(ratio.low), Ratio(ratio.high)),
      row.wanted.ratio > 0 ? fmt::format("{:g}", row.wanted.ratio) : "", Rate(o) / 1e9, PeakCell(row, o));
  if (const auto error = OurError(o)) {
    const std::string text = fmt::format("{:>8.1e}", *error);
    line += " " + (WithinContract(o) ? text : Paint(Style::kRed, text, stdout));
    const auto peer = PeerError(o);
    line += peer ? fmt::format(" {:>8.1e}", *peer) : std::string(9, ' ');
  }
  if (o.same_bits) line += *o.same_bits ? " same" : " " + Paint(Style::kRed, "DIFFER", stdout);
  if (row.wanted.memory > 0) {
    const std::string text = fmt::format("{:.2f} of its tensors, peer {:.2f}, wanted {:g}", o.memory,
                                         o.peer_memory, row.wanted.memory);
    line += "  memory " + Judged(text, -o.memory, -row.wanted.memory);
  }
  out.Print("{}\n", line);
  out.Flush();
}

void PrintList(const std::vector<Row>& rows, Output& out) {
  for (const Row& row : rows) {
    out.Print("{:<24}{}; {}beside {}\n", row.name, Describe(row.spec),
              row.through == bench::Through::kOp ? "through the operator, " : "", PeerName(row));
  }
}

Machine MeasureMachine(int threads) {
  return {bench::ProcessorName(), threads, bench::FmaPeak(threads), bench::ReadBandwidth(threads)};
}

// ATEN_CPU_CAPABILITY holds PyTorch's own kernels, not the products that it leaves to MKL and oneDNN: these
// are held to the same, unless the environment says otherwise. Before their first use.
void HoldMathLibraries() {
  const char* capability = std::getenv("ATEN_CPU_CAPABILITY");
  if (capability == nullptr || std::strcmp(capability, "avx2") != 0) return;
  setenv("MKL_ENABLE_INSTRUCTIONS", "AVX2", /*overwrite=*/0);
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", /*overwrite=*/0);
}

void RunBench(const BenchOptions& options) {
  const std::vector<Row> rows = bench::SelectRows(options.rows);
  Output out("-");
  if (options.list) return PrintList(rows, out);

  HoldMathLibraries();
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = options.common.threads > 0 ? static_cast<int>(options.common.threads) : cores;
  at::set_num_threads(threads);
  train::Progress progress(options.common.quiet ? nullptr : stderr);
  const Machine machine = MeasureMachine(threads);
  if (!options.json) PrintHead(machine, out);

  ordered_json results = ordered_json::array();
  std::vector<std::string> wrong;
  std::int64_t targets = 0, reached = 0;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const Row& row = rows[n];
    const bench::Settings settings{
        .threads = threads,
        .runs = static_cast<int>(options.runs),
        .check = !options.no_check,
        .progress = [&](std::string_view stage) {
          progress.Update(
              -1, [&] { return fmt::format("row {} of {}, {}: {}", n + 1, rows.size(), row.name, stage); });
        }};
    const Outcome outcome = RunRow(row, settings);
    progress.Finish();
    if (!WithinContract(outcome) || !outcome.same_bits.value_or(true)) wrong.push_back(row.name);
    if (HasTarget(row.wanted)) ++targets, reached += Reaches(row, outcome);
    if (options.json) {
      results.push_back(RowJson(row, outcome));
    } else {
      PrintRow(row, outcome, out);
    }
  }
  if (options.json) {
    out.Print("{}\n", ordered_json{{"machine", MachineJson(machine)}, {"rows", results}}.dump(2));
  } else {
    out.Print("\n{} of {} reach what is wanted\n", reached, Count(targets, "row"));
  }
  out.Flush();
  if (!wrong.empty()) {
    throw Error(fmt::format("{}: an error beyond the contract, or other bits on another number of threads",
                            Listed(wrong, "and")));
  }
}

}  // namespace

void AddBench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App& command = AddCommand(
      app, "bench",
      "Measure attention beside other libraries\n\n"
      "Each row runs both sides alternately, on the same tensors and threads. Shown are the medians, the "
      "ratio "
      "of neighbouring runs with its quartiles, useful operations a second and their share of the "
      "multiply-adds "
      "that this machine can do, the largest error against float64, and whether one thread and several give "
      "the same bits.",
      "regard bench\nregard bench dense causal-1024 'additive-*'\nregard bench --list\n"
      "ATEN_CPU_CAPABILITY=avx2 REGARD_TARGET=AVX2 regard bench dense causal");
  command
      .add_option("ROW", options->rows, "Rows by name, by its beginning or by a pattern (*, ?); none: all")
      ->type_name("");
  AddInteger(command, "--runs", "N", options->runs, 1, "Runs of each side", 1000);
  AddFlag(command, "--list", options->list, "Only list the rows");
  AddFlag(command, "--no-check", options->no_check, "Only times: no errors, no comparison of bits");
  AddFlag(command, "--json", options->json, "As JSON, with all digits");
  AddCommon(command, options->common);
  command.callback([options] { RunBench(*options); });
}

}  // namespace regard::cli
