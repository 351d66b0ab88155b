// One decoder step of additive attention, and larger calls. Each benchmark first checks its result against
// the formula in float64.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>

#include "engine/kernels/reference.h"
#include "engine/testing/case.h"

namespace regard::engine {
namespace {

// Arguments: B, H, L, S, D, score.
Case<float> MakeCase(const benchmark::State& state) {
  Spec spec;
  spec.B = state.range(0), spec.H = spec.G = state.range(1), spec.L = state.range(2);
  spec.S = state.range(3), spec.D = spec.E = state.range(4);
  spec.score = static_cast<TestScore>(state.range(5));
  spec.mask = TestMask::kLengths;
  spec.dropout = 0.1;
  spec.want_weights = spec.L == 1;
  return Case<float>(spec);
}

bool Right(const Case<float>& c) {
  if (!c.Forward().ok()) return false;
  const auto right = ReferenceForward<double>(c.options, c.Inputs());
  const auto got = c.out.Values();
  for (std::size_t n = 0; n < got.size(); ++n) {
    if (std::abs(static_cast<double>(got[n]) - right.out[n]) > 1e-5) return false;
  }
  return true;
}

void Forward(benchmark::State& state) {
  const Case<float> c = MakeCase(state);
  if (!Right(c)) return state.SkipWithError("the result is wrong");
  for (auto _ : state) benchmark::DoNotOptimize(c.Forward().ok());
}

void Backward(benchmark::State& state) {
  const Case<float> c = MakeCase(state);
  if (!Right(c)) return state.SkipWithError("the result is wrong");
  AttentionUpstream<float> upstream = c.Upstream();
  upstream.dweights.reset();
  AttentionGradients<float> gradients = c.Gradients();
  gradients.accumulate = true;
  for (auto _ : state) {
    benchmark::DoNotOptimize(AttentionBackward(c.options, c.Inputs(), upstream, gradients).ok());
  }
}

constexpr auto kAdditive = static_cast<std::int64_t>(TestScore::kAdditive);
constexpr auto kScaledDot = static_cast<std::int64_t>(TestScore::kScaledDot);

void Sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"B", "H", "L", "S", "D", "score"});
  b->Args({64, 1, 1, 10, 32, kAdditive});
  b->Args({128, 1, 1, 16, 256, kAdditive});
  b->Args({1, 4, 512, 512, 64, kScaledDot});
  b->Unit(benchmark::kMicrosecond);
}
BENCHMARK(Forward)->Apply(Sizes);
BENCHMARK(Backward)->Apply(Sizes);

}  // namespace
}  // namespace regard::engine

BENCHMARK_MAIN();
