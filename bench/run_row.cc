#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "bench/machine.h"
#include "bench/rows.h"
#include "bench/sides.h"

namespace regard::bench {
namespace {

std::unique_ptr<Side> OurSide(const Row& row, const Tensors& tensors, int threads) {
  if (row.through == Through::kOp) return OpSide(row.spec, tensors);
  return EngineSide(row.spec, tensors, threads);
}

std::unique_ptr<Side> PeerSide(const Row& row, const Tensors& tensors, int threads) {
  if (row.peer == Peer::kPyTorch) return PyTorchSide(row.spec, tensors);
  return OurSide(row, tensors.To(at::kFloat), threads);
}

// max |got - right| / max |right|; infinite where NaN is on one side only
double Difference(const at::Tensor& got, const at::Tensor& right) {
  const double scale = right.abs().max().item<double>();
  const double worst = (got.to(at::kDouble) - right).abs().max().item<double>();
  if (std::isnan(worst)) return std::numeric_limits<double>::infinity();
  return scale == 0 ? worst : worst / scale;
}

// With dropout the engine in float64, which drops the same weights, takes the formula's place.
std::vector<TensorError> Check(const Row& row, const Tensors& tensors, const Side& ours, const Side& peer) {
  std::vector<TensorError> errors;
  const Results got = ours.Get();
  if (row.spec.dropout > 0) {
    const auto exact = EngineSide(row.spec, tensors.To(at::kDouble), 0);
    exact->Call();
    const Results right = exact->Get();
    for (std::size_t n = 0; n < right.size(); ++n) {
      errors.push_back({right[n].name, Difference(got[n].tensor, right[n].tensor), {}, {}});
    }
    return errors;
  }
  const Results right = WrittenOut(row.spec, tensors, at::kDouble);
  const Results written = WrittenOut(row.spec, tensors, row.spec.type);
  const Results theirs = peer.Get();
  for (std::size_t n = 0; n < right.size(); ++n) {
    const at::Tensor& exact = right[n].tensor;
    errors.push_back({right[n].name, Difference(got[n].tensor, exact), Difference(theirs[n].tensor, exact),
                      Difference(written[n].tensor, exact)});
  }
  return errors;
}

bool SameBits(const Results& a, const Results& b) {
  for (std::size_t n = 0; n < a.size(); ++n) {
    const at::Tensor x = a[n].tensor.contiguous(), y = b[n].tensor.contiguous();
    if (std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) != 0) return false;
  }
  return true;
}

// On one thread and on `threads`, at least two.
bool SameOnAnyThreads(const Row& row, const Tensors& tensors, int threads) {
  Results results[2];
  for (int n = 0; n < 2; ++n) {
    const int some = n == 0 ? 1 : std::max(2, threads);
    at::set_num_threads(some);
    const auto side = OurSide(row, tensors, some);
    side->Call();
    results[n] = side->Get();
  }
  at::set_num_threads(threads);
  return SameBits(results[0], results[1]);
}

Outcome RunForMemory(const Row& row, const Settings& settings, Outcome outcome) {
  double seconds[2], memory[2];
  for (int n = 0; n < 2; ++n) {
    settings.progress(n == 0 ? "memory" : "memory of the peer");
    memory[n] = PeakGrowth([&] {
      const Tensors tensors = MakeTensors(row.spec);
      const auto side =
          n == 0 ? OurSide(row, tensors, settings.threads) : PeerSide(row, tensors, settings.threads);
      const auto start = std::chrono::steady_clock::now();
      side->Call();
      seconds[n] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    });
  }
  outcome.memory = memory[0] / outcome.bytes;
  outcome.peer_memory = memory[1] / outcome.bytes;
  outcome.time = {QuartilesOf({seconds[0]}), QuartilesOf({seconds[1]}),
                  QuartilesOf({seconds[1] / seconds[0]})};
  return outcome;
}

// What the machine can do changes with its clock and its other work: the best before and after a row counts.
void MeasureLimits(const Row& row, int threads, Outcome& outcome) {
  outcome.fma_peak = std::max(outcome.fma_peak, FmaPeak(threads));
  if (row.wanted.bandwidth > 0) outcome.bandwidth = std::max(outcome.bandwidth, ReadBandwidth(threads));
}

}  // namespace

Outcome RunRow(const Row& row, const Settings& settings) {
  Outcome outcome;
  outcome.work = UsefulWork(row.spec);
  outcome.bytes = TensorBytes(row.spec);
  MeasureLimits(row, settings.threads, outcome);
  if (row.wanted.memory > 0) return RunForMemory(row, settings, outcome);
  const Tensors tensors = MakeTensors(row.spec);
  const auto ours = OurSide(row, tensors, settings.threads);
  const auto peer = PeerSide(row, tensors, settings.threads);
  outcome.time =
      Compare([&] { ours->Call(); }, [&] { peer->Call(); }, settings.runs,
              [&](int run) { settings.progress(fmt::format("run {} of {}", run + 1, settings.runs)); });
  MeasureLimits(row, settings.threads, outcome);
  if (!settings.check) return outcome;
  settings.progress("error against float64");
  outcome.errors = Check(row, tensors, *ours, *peer);
  settings.progress("bits on one thread");
  outcome.same_bits = SameOnAnyThreads(row, tensors, settings.threads);
  return outcome;
}

}  // namespace regard::bench
