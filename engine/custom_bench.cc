// Parts of the caller's own beside the built-in parts that they repeat, at 1,8,4096,64 on one thread; scores
// that are no product at 1,8,1024,64.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "engine/testing/case.h"
#include "regard/custom.h"

namespace regard::engine {
namespace {

struct LearnedAlibi {
  static constexpr int kParameters = 1;
  auto operator()(auto s, const auto& at, const auto& slope) const { return s - slope[0] * Abs(at.offset); }
};

struct Softcapped {
  float cap;
  auto operator()(auto s, const auto&, const auto&) const { return cap * Tanh(s / cap); }
};

struct OwnAdditive {
  auto operator()(auto q, auto k, auto w) const { return w * Tanh(q + k); }
};

struct Manhattan {
  auto operator()(auto q, auto k, auto w) const { return -w * Abs(q - k); }
};

struct SameDocument {
  const std::int64_t* document;
  bool operator()(const Pair& at) const { return document[at.i] == document[at.j]; }
};

enum Part {
  kNone,
  kAlibi,
  kLearnedAlibi,
  kSoftcap,
  kOwnSoftcap,
  kSegments,
  kSameDocument,
  kAdditive,
  kOwnAdditive,
  kManhattan
};

struct Setup {
  explicit Setup(Part part) : c(SpecOf(part)) {
    c.options.threads = 1;
    slopes = Tensor<float, 2>({8, 1}, 0.01f);
    dslopes = Tensor<float, 2>({8, 1});
    documents = Tensor<std::int64_t, 2>({1, 4096});
    for (std::int64_t i = 0; i < 4096; ++i) documents(0, i) = i / 1000;
    for (std::int64_t h = 0; part == kAlibi && h < 8; ++h) c.slopes(h) = 0.01f;
    if (part == kLearnedAlibi) c.options.change = CustomChange<float>(LearnedAlibi{}, slopes.view());
    if (part == kOwnSoftcap) c.options.change = CustomChange<float>(Softcapped{10});
    if (part == kOwnAdditive) c.options.score = CustomScore<float>(OwnAdditive{}, c.w.view());
    if (part == kManhattan) c.options.score = CustomScore<float>(Manhattan{}, c.w.view());
    if (part == kSegments) c.options.mask.segments = Segments{documents.view(), documents.view()};
    if (part == kSameDocument) c.options.mask.custom = CustomMask(SameDocument{documents.view().data});
  }

  static Spec SpecOf(Part part) {
    Spec spec{.B = 1, .H = 8, .G = 8, .L = 4096, .S = 4096, .D = 64, .E = 64, .want_weights = false};
    if (part >= kAdditive) {
      spec.L = spec.S = 1024;
      spec.score = TestScore::kAdditive;
    }
    spec.alibi = part == kAlibi;
    spec.softcap = part == kSoftcap ? 10 : 0;
    return spec;
  }

  Case<float> c;
  Tensor<float, 2> slopes, dslopes;
  Tensor<std::int64_t, 2> documents;
};

void Forward(benchmark::State& state, Part part) {
  const Setup setup(part);
  for (auto _ : state) benchmark::DoNotOptimize(setup.c.Forward().ok());
}

void Backward(benchmark::State& state, Part part) {
  const Setup setup(part);
  benchmark::DoNotOptimize(setup.c.Forward().ok());
  AttentionGradients<float> gradients = setup.c.Gradients();
  if (part == kLearnedAlibi) gradients.dchange = setup.dslopes.view();
  for (auto _ : state) {
    const Status status = AttentionBackward(setup.c.options, setup.c.Inputs(), setup.c.Upstream(), gradients);
    if (!status.ok()) state.SkipWithError(status.message().c_str());
  }
}

#define REGARD_ROW(part)                                                 \
  BENCHMARK_CAPTURE(Forward, part, part)->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(Backward, part, part)->Unit(benchmark::kMillisecond)
REGARD_ROW(kNone);
REGARD_ROW(kAlibi);
REGARD_ROW(kLearnedAlibi);
REGARD_ROW(kSoftcap);
REGARD_ROW(kOwnSoftcap);
REGARD_ROW(kSegments);
REGARD_ROW(kSameDocument);
REGARD_ROW(kAdditive);
REGARD_ROW(kOwnAdditive);
REGARD_ROW(kManhattan);

}  // namespace
}  // namespace regard::engine

BENCHMARK_MAIN();
