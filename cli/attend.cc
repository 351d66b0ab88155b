// regard attend: one attention call on arrays in .npy files. From here to the engine is one hop.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "data/npy.h"
#include "engine/base/error.h"
#include "regard/attention.h"

namespace regard::cli {
namespace {

using data::NpyArray;

struct AttendOptions {
  Common common;
  std::string query, key, value;
  std::string score = "scaled-dot", scale, weight, precision;
  std::string softcap, bias, alibi;
  std::string causal, window, corner = "top-left";
  std::string lengths, keep, query_segments, key_segments, blocks, block_size;
  bool exclude_self = false;
  std::string normalizer = "softmax";
  std::int64_t seed = 0;
  double dropout = 0;
  std::string out = "-", weights, lse, index, log_prob;
};

// An array of rank `kRank` or less: sizes of 1 are put in front.
template <typename T, std::size_t kRank>
struct Array {
  std::vector<T> values;
  std::array<std::int64_t, kRank> shape{};

  TensorView<const T, kRank> view() const { return {values.data(), shape}; }
};

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

template <typename T, std::size_t kRank>
Array<T, kRank> Fit(const NpyArray& file, const std::string& path) {
  if (file.shape.size() > kRank) {
    throw Error(
        fmt::format("{}: has shape {}; expected at most {} dimensions", path, ShapeText(file.shape), kRank));
  }
  Array<T, kRank> array;
  array.shape.fill(1);
  std::copy(file.shape.begin(), file.shape.end(), array.shape.end() - file.shape.size());
  std::visit([&](const auto& values) { array.values.assign(values.begin(), values.end()); }, file.values);
  return array;
}

template <typename T, std::size_t kRank>
Array<T, kRank> Load(const std::string& path) {
  return Fit<T, kRank>(data::ReadNpy(path), path);
}

// 0 and 1 as booleans: std::vector<bool> has no data to point into.
template <std::size_t kRank>
struct BoolArray {
  std::unique_ptr<bool[]> values;
  std::array<std::int64_t, kRank> shape{};

  explicit BoolArray(const std::string& path) {
    const auto array = Load<std::int64_t, kRank>(path);
    shape = array.shape;
    values = std::make_unique<bool[]>(array.values.size());
    std::transform(array.values.begin(), array.values.end(), values.get(),
                   [](std::int64_t value) { return value != 0; });
  }
  TensorView<const bool, kRank> view() const { return {values.get(), shape}; }
};

// "A,B", either of which may be empty.
std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> ParsePair(const std::string& option,
                                                                              const std::string& text) {
  const std::size_t comma = text.find(',');
  auto parse = [&](const std::string& part) -> std::optional<std::int64_t> {
    if (part.empty()) return std::nullopt;
    if (part.find_first_not_of("0123456789") != std::string::npos || part.size() > 18)
      throw UsageError(fmt::format("{} {}: expected two whole numbers, such as 3,0", option, text));
    return std::stoll(part);
  };
  if (comma == std::string::npos)
    throw UsageError(fmt::format("{} {}: expected two whole numbers, such as 3,0", option, text));
  return {parse(text.substr(0, comma)), parse(text.substr(comma + 1))};
}

double ParseReal(const std::string& option, const std::string& text) {
  try {
    std::size_t used = 0;
    const double value = std::stod(text, &used);
    if (used == text.size()) return value;
  } catch (const std::logic_error&) {  // not a number, or one out of range: said below
  }
  throw UsageError(fmt::format("{} {}: expected a number", option, text));
}

Corner CornerNamed(const std::string& name) {
  return name == "bottom-right" ? Corner::kBottomRight : Corner::kTopLeft;
}

// Everything the options point to, kept alive for the call.
template <typename T>
struct Call {
  AttentionOptions<T> attention;
  Array<T, 2> w;
  Array<T, 1> precision, slopes;
  Array<T, 4> bias;
  Array<std::int64_t, 2> lengths, query_segments, key_segments;
  std::optional<BoolArray<4>> keep, blocks;
};

void NeedOnlyFor(const std::string& option, const std::string& value, const std::string& score,
                 const std::vector<std::string>& wanted) {
  if (!value.empty() && std::find(wanted.begin(), wanted.end(), score) == wanted.end())
    throw UsageError(
        fmt::format("{} goes with --score {}, not with {}", option, fmt::join(wanted, " or "), score));
}

// In the order of CompactKernel.
const std::vector<std::string> kCompactKernels{"boxcar", "triangular", "epanechnikov", "tricube"};

template <typename T>
void LoadPrecision(const std::string& precision, Call<T>& call) {
  if (precision.ends_with(".npy")) {
    call.precision = Load<T, 1>(precision);
  } else {
    call.precision = {{static_cast<T>(precision.empty() ? 1.0 : ParseReal("--precision", precision))}, {1}};
  }
}

template <typename T>
void SetScore(const AttendOptions& options, Call<T>& call) {
  const std::string& score = options.score;
  const auto kernel = std::find(kCompactKernels.begin(), kCompactKernels.end(), score);
  std::vector<std::string> with_precision{"gaussian"};
  with_precision.insert(with_precision.end(), kCompactKernels.begin(), kCompactKernels.end());
  NeedOnlyFor("--weight", options.weight, score, {"additive"});
  NeedOnlyFor("--precision", options.precision, score, with_precision);
  NeedOnlyFor("--scale", options.scale, score, {"dot", "cosine"});
  const double scale = options.scale.empty() ? 1.0 : ParseReal("--scale", options.scale);
  if (score == "dot") {
    call.attention.score = Dot{scale};
  } else if (score == "cosine") {
    call.attention.score = Cosine{.scale = scale};
  } else if (score == "additive") {
    if (options.weight.empty()) throw UsageError("--score additive needs --weight, an array [D] or [H, D]");
    call.w = Load<T, 2>(options.weight);
    call.attention.score = Additive<T>{call.w.view()};
  } else if (score == "gaussian") {
    LoadPrecision(options.precision, call);
    call.attention.score = Gaussian<T>{call.precision.view()};
  } else if (kernel != kCompactKernels.end()) {
    LoadPrecision(options.precision, call);
    call.attention.score =
        Compact<T>{static_cast<CompactKernel>(kernel - kCompactKernels.begin()), call.precision.view()};
  }
}

template <typename T>
void SetMask(const AttendOptions& options, Call<T>& call) {
  Mask& mask = call.attention.mask;
  if (!options.causal.empty()) mask.causal = Causal{CornerNamed(options.causal)};
  if (!options.window.empty()) {
    const auto [left, right] = ParsePair("--window", options.window);
    mask.window = Window{left, right, CornerNamed(options.corner)};
  }
  if (!options.lengths.empty()) {
    const NpyArray file = data::ReadNpy(options.lengths);
    call.lengths = Fit<std::int64_t, 2>(file, options.lengths);
    if (file.shape.size() == 1) std::swap(call.lengths.shape[0], call.lengths.shape[1]);  // [B] is [B, 1]
    mask.lengths = Lengths{call.lengths.view()};
  }
  if (options.query_segments.empty() != options.key_segments.empty())
    throw UsageError("--query-segments and --key-segments go together");
  if (!options.query_segments.empty()) {
    call.query_segments = Load<std::int64_t, 2>(options.query_segments);
    call.key_segments = Load<std::int64_t, 2>(options.key_segments);
    mask.segments = Segments{call.query_segments.view(), call.key_segments.view()};
  }
  if (options.blocks.empty() != options.block_size.empty())
    throw UsageError("--blocks and --block-size go together");
  if (!options.blocks.empty()) {
    const auto [query_size, key_size] = ParsePair("--block-size", options.block_size);
    call.blocks.emplace(options.blocks);
    mask.blocks = Blocks{call.blocks->view(), query_size.value_or(0), key_size.value_or(0)};
  }
  if (!options.keep.empty()) {
    call.keep.emplace(options.keep);
    mask.keep = Keep{call.keep->view()};
  }
  mask.exclude_self = options.exclude_self;
}

template <typename T>
void SetRest(const AttendOptions& options, Call<T>& call) {
  AttentionOptions<T>& attention = call.attention;
  if (!options.softcap.empty()) attention.softcap = ParseReal("--softcap", options.softcap);
  if (!options.bias.empty()) {
    call.bias = Load<T, 4>(options.bias);
    attention.bias = call.bias.view();
  }
  if (!options.alibi.empty()) {
    call.slopes = Load<T, 1>(options.alibi);
    attention.alibi = Alibi<T>{call.slopes.view(), CornerNamed(options.corner)};
  }
  const auto seed = static_cast<std::uint64_t>(options.seed);
  if (options.normalizer == "argmax") attention.normalizer = Argmax{};
  if (options.normalizer == "sample") attention.normalizer = Sample{seed};
  attention.dropout = Dropout{options.dropout, seed};
  attention.threads = static_cast<int>(options.common.threads);
}

// `sizes` without the leading dimensions that the query file did not have.
std::vector<std::int64_t> LikeQuery(const std::vector<std::int64_t>& sizes, std::size_t query_rank) {
  return {sizes.begin() + static_cast<std::ptrdiff_t>(4 - query_rank), sizes.end()};
}

template <typename T>
void Save(const std::string& path, std::vector<std::int64_t> shape, std::vector<T> values) {
  data::WriteNpy(path, NpyArray{std::move(shape), std::move(values)});
}

// One query a line.
template <typename T>
void PrintRows(const std::vector<T>& values, std::int64_t width) {
  Output out("-");
  const auto E = static_cast<std::size_t>(std::max<std::int64_t>(width, 1));
  for (std::size_t i = 0; i < values.size(); i += E) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i);
    out.Print("{:.8g}\n", fmt::join(begin, begin + static_cast<std::ptrdiff_t>(E), "\t"));
  }
  out.Flush();
}

template <typename T>
void RunAttend(const AttendOptions& options, const NpyArray& query) {
  const auto q = Fit<T, 4>(query, options.query);
  const auto k = Load<T, 4>(options.key), v = Load<T, 4>(options.value);
  Call<T> call;
  SetScore(options, call);
  SetMask(options, call);
  SetRest(options, call);

  const auto [B, H, L, D] = q.shape;
  const std::int64_t S = k.shape[2], E = v.shape[3];
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const bool chooses = options.normalizer != "softmax";
  if (!chooses && (!options.index.empty() || !options.log_prob.empty()))
    throw UsageError("--index and --log-prob go with --normalizer argmax or sample");
  std::vector<T> out(size(B * H * L * E)), lse, weights, log_prob;
  std::vector<std::int64_t> index;
  AttentionOutputs<T> outputs{
      .out = {out.data(), {B, H, L, E}}, .lse = {}, .weights = {}, .index = {}, .log_prob = {}};
  auto want = [&](const std::string& path, auto& values, auto& view, auto... sizes) {
    if (path.empty()) return;
    values.resize(size((sizes * ...)));
    view.emplace(values.data(), std::array<std::int64_t, sizeof...(sizes)>{sizes...});
  };
  want(options.weights, weights, outputs.weights, B, H, L, S);
  want(options.lse, lse, outputs.lse, B, H, L);
  want(options.index, index, outputs.index, B, H, L);
  want(options.log_prob, log_prob, outputs.log_prob, B, H, L);

  const AttentionInputs<T> inputs{q.view(), k.view(), v.view()};
  const Status status = AttentionForward(call.attention, inputs, outputs);
  if (!status.ok()) throw Error(status.message());

  const std::size_t rank = std::max<std::size_t>(query.shape.size(), 2);
  const auto rows = LikeQuery({B, H, L, 0}, rank);
  const std::vector<std::int64_t> row_shape(rows.begin(), rows.end() - 1);
  if (!options.weights.empty()) Save(options.weights, LikeQuery({B, H, L, S}, rank), std::move(weights));
  if (!options.lse.empty()) Save(options.lse, row_shape, std::move(lse));
  if (!options.index.empty()) Save(options.index, row_shape, std::move(index));
  if (!options.log_prob.empty()) Save(options.log_prob, row_shape, std::move(log_prob));
  if (options.out == "-") {
    PrintRows(out, E);
  } else {
    Save(options.out, LikeQuery({B, H, L, E}, rank), std::move(out));
  }
}

void RunAttend(const AttendOptions& options) {
  const NpyArray query = data::ReadNpy(options.query);
  if (std::holds_alternative<std::vector<double>>(query.values)) {
    RunAttend<double>(options, query);
  } else {
    RunAttend<float>(options, query);
  }
}

void AddScoreOptions(CLI::App& command, AttendOptions& o) {
  const std::string group = "Score";
  std::vector<std::string> scores{"scaled-dot", "dot", "cosine", "additive", "gaussian"};
  scores.insert(scores.end(), kCompactKernels.begin(), kCompactKernels.end());
  AddChoice(command, "--score", o.score, scores, "How a query is compared with a key")->group(group);
  AddText(command, "--scale", "X", o.scale, "Factor of the dot or cosine score")->group(group);
  AddText(command, "--weight", "FILE", o.weight, "w of the additive score, [D] or [H, D]")->group(group);
  AddText(command, "--precision", "X|FILE", o.precision,
          "Of the Gaussian score and the compact kernels: a number, or an array of 1 or D of them")
      ->group(group);
  AddText(command, "--softcap", "C", o.softcap, "s becomes C tanh(s / C)")->group(group);
  AddText(command, "--bias", "FILE", o.bias, "Added to the score; each dimension full or 1")->group(group);
  AddText(command, "--alibi", "FILE", o.alibi, "Slopes [H]: s - slope * distance")->group(group);
}

void AddMaskOptions(CLI::App& command, AttendOptions& o) {
  const std::string group = "Mask (all that are given must allow)";
  const std::vector<std::string> corners{"top-left", "bottom-right"};
  AddChoice(command, "--causal", o.causal, corners, "No key after the query, counted from a corner")
      ->group(group);
  AddText(command, "--window", "LEFT,RIGHT", o.window, "Keys at most so far from the query; empty: any")
      ->group(group);
  AddChoice(command, "--corner", o.corner, corners, "Where --window and --alibi count from")->group(group);
  AddText(command, "--lengths", "FILE", o.lengths, "Keys that exist, [B] or [B, L]")->group(group);
  AddText(command, "--keep", "FILE", o.keep, "1 where a pair takes part; each dimension full or 1")
      ->group(group);
  AddText(command, "--query-segments", "FILE", o.query_segments, "Numbers [B, L] of packed sequences")
      ->group(group);
  AddText(command, "--key-segments", "FILE", o.key_segments, "The same of the keys, [B, S]")->group(group);
  AddText(command, "--blocks", "FILE", o.blocks, "1 where a block of pairs takes part")->group(group);
  AddText(command, "--block-size", "Q,K", o.block_size, "Queries and keys of a block")->group(group);
  AddFlag(command, "--exclude-self", o.exclude_self, "Query i does not see key i")->group(group);
}

}  // namespace

void AddAttend(CLI::App& app) {
  auto o = std::make_shared<AttendOptions>();
  CLI::App& command = AddCommand(
      app, "attend",
      "Attention on arrays in .npy files\n"
      "The arrays are float32 or float64: q [B, H, L, D], k [B, G, S, D], v [B, G, S, E], where leading "
      "dimensions of 1 may be left out. Without -o the result is printed, one query a line.",
      "regard attend q.npy k.npy v.npy -o out.npy --weights weights.npy\n"
      "regard attend q.npy k.npy v.npy --score gaussian --precision 0.5 --causal top-left");
  AddText(command, "QUERY", "", o->query, "Array q")->required();
  AddText(command, "KEY", "", o->key, "Array k")->required();
  AddText(command, "VALUE", "", o->value, "Array v")->required();
  AddScoreOptions(command, *o);
  AddMaskOptions(command, *o);
  AddChoice(command, "--normalizer", o->normalizer, {"softmax", "argmax", "sample"},
            "How scores become weights");
  AddReal(command, "--dropout", "P", o->dropout, {.min = 0, .max = 1, .below = true},
          "Dropout on the weights");
  AddInteger(command, "--seed", "N", o->seed, 0, "Seed of dropout and sampling");
  AddText(command, "-o,--output", "FILE", o->out, "Where the result goes, like q with width E; -: printed")
      ->group("Output");
  AddText(command, "--weights", "FILE", o->weights, "Write the weights")->group("Output");
  AddText(command, "--lse", "FILE", o->lse, "Write log sum exp of each query's scores")->group("Output");
  AddText(command, "--index", "FILE", o->index, "Write the chosen keys (argmax, sample)")->group("Output");
  AddText(command, "--log-prob", "FILE", o->log_prob, "Write their log-probabilities")->group("Output");
  AddCommon(command, o->common);
  command.callback([o] { RunAttend(*o); });
}

}  // namespace regard::cli
