// The kernels against the formula in float64, on every target that this machine has.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "engine/testing/case.h"
#include "engine/testing/sizes.h"
#include "engine/testing/targets.h"

namespace regard::engine {
namespace {

constexpr std::array kScores = {TestScore::kScaledDot,
                                TestScore::kDot,
                                TestScore::kCosine,
                                TestScore::kAdditive,
                                TestScore::kAdditivePerHead,
                                TestScore::kGaussian,
                                TestScore::kGaussianPerDimension,
                                TestScore::kBoxcar,
                                TestScore::kTriangular,
                                TestScore::kEpanechnikov,
                                TestScore::kTricube,
                                TestScore::kTricubePerDimension};
constexpr int kMasks = static_cast<int>(TestMask::kMany) + 1;

class Kernels : public OnTarget {};
REGARD_ON_EVERY_TARGET(Kernels);

void CheckBothTypes(const Spec& spec) {
  CheckAgainstReference<float>(spec);
  CheckAgainstReference<double>(spec);
}

TEST_P(Kernels, EveryScoreMaskAndNormalizerFollowsItsFormula) {
  std::uint64_t seed = 0;
  for (TestScore score : kScores) {
    for (int mask = 0; mask < kMasks; ++mask) {
      for (const Normalizer& normalizer :
           {Normalizer(Softmax{}), Normalizer(Argmax{}), Normalizer(Sample{5})}) {
        Spec spec{
            .L = 9, .S = 30, .score = score, .mask = static_cast<TestMask>(mask), .normalizer = normalizer};
        spec.seed = ++seed;
        if (seed % kEveryNth != 0) continue;
        spec.upstream_lse = seed % 2 == 0;
        CheckBothTypes(spec);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Kernels, SizesAroundTileEdges) {
  std::uint64_t seed = 100;
  for (std::int64_t S : {0, 1, 2, 127, 128, 129, 260}) {
    for (std::int64_t L : {0, 1, 31, 32, 33, 65}) {
      for (TestMask mask : {TestMask::kNone, TestMask::kCausalBottomRight, TestMask::kMany}) {
        Spec spec{.B = 1, .H = 2, .G = 1, .L = L, .S = S, .D = 5, .E = 4, .mask = mask};
        spec.seed = ++seed;
        if (seed % kEveryNth != 0) continue;
        spec.score = kScores[seed % kScores.size()];
        CheckBothTypes(spec);
      }
    }
  }
}

// The edges of kBlockRows, of kTileKeys, and of panels of 64, 32 and 16 keys.
TEST_P(Kernels, SizesAroundEdgesOfBlocksAndPanels) {
  const std::array masks = {TestMask::kNone, TestMask::kCausalBottomRight, TestMask::kMany,
                            TestMask::kLengths};
  const std::array normalizers = {Normalizer(Softmax{}), Normalizer(Argmax{}), Normalizer(Softmax{}),
                                  Normalizer(Sample{5})};

  const std::uint64_t nth = GetParam() == "SCALAR" ? 3 * kEveryNth : kEveryNth;
  std::uint64_t seed = 500;
  for (std::int64_t S : {1, 15, 16, 17, 33, 63, 64, 65, 255, 256, 257, 515}) {
    for (std::int64_t L : {1, 6, 7, 48, 49, 95, 96, 97, 193}) {
      if (++seed % nth != 0) continue;
      TestRandom r(seed);
      Spec spec{.B = 1, .H = 4, .G = 2, .L = L, .S = S, .D = 5, .E = 4};
      spec.seed = seed;
      spec.score = kScores[static_cast<std::size_t>(r.Below(kScores.size()))];
      spec.mask = masks[static_cast<std::size_t>(r.Below(masks.size()))];
      spec.normalizer = normalizers[static_cast<std::size_t>(r.Below(normalizers.size()))];
      if (r.Chance(0.5)) spec.bias_shape = {r.Below(2), r.Below(2), r.Below(2), r.Below(2)};
      spec.upstream_lse = spec.bias_shape.has_value();
      if (r.Chance(0.3)) spec.dropout = 0.3;
      CheckBothTypes(spec);
    }
  }
}

// Few keys are computed a query to a lane: the edges of vectors and panels of queries, and of groups of keys.
TEST_P(Kernels, FewKeys) {
  const std::array masks = {
      TestMask::kNone,           TestMask::kCausal,  TestMask::kCausalBottomRight, TestMask::kWindow,
      TestMask::kWindowOneSided, TestMask::kLengths, TestMask::kLengthsPerQuery};
  std::uint64_t seed = 700;
  for (std::int64_t S : {1, 5, 6, 7, 17, 63, 64, 65}) {
    for (std::int64_t L : {1, 15, 16, 17, 33, 64, 65, 97}) {
      if (++seed % kEveryNth != 0) continue;
      TestRandom r(seed);
      Spec spec{.B = 2, .H = 2, .G = r.Below(2) + 1, .L = L, .S = S, .D = r.Below(20), .E = r.Below(70)};
      spec.seed = seed;
      spec.mask = masks[seed % masks.size()];
      spec.layout = kLayouts[static_cast<std::size_t>(r.Below(4))];
      spec.upstream_lse = r.Chance(0.5);
      CheckBothTypes(spec);
    }
  }
}

TEST_P(Kernels, WidthsAroundVectorEdges) {
  std::uint64_t seed = 200;
  for (std::int64_t D : {0, 1, 3, 7, 8, 15, 16, 17, 33, 65, 257}) {
    for (TestScore score : kScores) {
      Spec spec{.B = 1, .H = 2, .G = 2, .L = 3, .S = 9, .D = D, .E = 2, .score = score};
      spec.seed = ++seed;
      if (seed % kEveryNth != 0) continue;
      CheckBothTypes(spec);
      std::swap(spec.D, spec.E);
      CheckBothTypes(spec);
    }
  }
}

// Most weights are 0, of whole tiles and groups of rows too.
TEST_P(Kernels, NarrowGaussiansAlongALine) {
  std::uint64_t seed = 800;
  for (std::int64_t D : {1, 3, 17}) {
    for (TestScore score : {TestScore::kGaussian, TestScore::kGaussianPerDimension}) {
      for (TestMask mask : {TestMask::kNone, TestMask::kCausalBottomRight, TestMask::kKeep}) {
        if (++seed % kEveryNth != 0) continue;
        TestRandom r(seed);
        Spec spec{.B = 1, .H = 1, .G = 1, .L = r.Below(90) + 1, .S = 200 + r.Below(60), .D = D};
        spec.score = score, spec.mask = mask, spec.drift = r.Chance(0.2) ? -300 : 300;
        spec.dropout = r.Chance(0.2) ? 0.3 : 0, spec.upstream_lse = r.Chance(0.5), spec.seed = seed;
        CheckBothTypes(spec);
      }
    }
  }
}

TEST_P(Kernels, SoftcapBiasAlibiAndDropoutTogetherAndAlone) {
  const std::vector<std::array<std::int64_t, 4>> shapes = {{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0},
                                                           {0, 0, 1, 0}, {0, 0, 0, 1}, {1, 1, 0, 0},
                                                           {1, 1, 1, 0}, {1, 0, 1, 1}, {1, 1, 1, 1}};
  std::uint64_t seed = 300;
  for (const auto& shape : shapes) {
    for (int parts = 0; parts < 8; ++parts) {
      Spec spec{.B = 1, .H = 2, .G = 1, .L = 33, .S = 131};
      spec.seed = ++seed;
      if (seed % kEveryNth != 0) continue;
      spec.bias_shape = shape;
      if (parts & 1) spec.softcap = 0.7;
      if (parts & 2) spec.alibi = true;
      if (parts & 4) spec.dropout = 0.3;
      spec.mask = parts % 3 == 0 ? TestMask::kNone : TestMask::kKeep;
      spec.want_weights = parts % 2 == 0;
      spec.upstream_lse = true;  // without it the gradient of a bias that is the same for all keys is 0
      spec.score = kScores[seed % kScores.size()];
      CheckBothTypes(spec);
    }
  }
}

Spec RandomSpec(std::uint64_t seed) {
  TestRandom r(seed);
  Spec spec;
  spec.G = r.Below(3) + 1;
  spec.H = spec.G * (r.Below(3) + 1);
  spec.B = r.Below(3) + 1;
  spec.L = r.Below(r.Chance(0.2) ? 70 : 10);
  spec.S = r.Below(r.Chance(0.2) ? 300 : 20);
  spec.D = r.Below(r.Chance(0.2) ? 70 : 20);
  spec.E = r.Below(r.Chance(0.2) ? 70 : 20);
  spec.score = kScores[static_cast<std::size_t>(r.Below(kScores.size()))];
  // In one dimension a cosine is 1 or -1: its gradient is 0, the difference of two equal numbers as large as
  // 1 / |k|, which the formula cancels to the last bit and a fused multiply-add does not.
  if (spec.score == TestScore::kCosine) spec.D = std::max<std::int64_t>(spec.D, 2);
  spec.mask = static_cast<TestMask>(r.Below(kMasks));
  if (r.Chance(0.3)) spec.normalizer = r.Chance(0.5) ? Normalizer(Argmax{}) : Normalizer(Sample{seed});
  if (r.Chance(0.3)) spec.softcap = 1.5;
  if (r.Chance(0.3)) spec.bias_shape = {r.Below(2), r.Below(2), r.Below(2), r.Below(2)};
  spec.alibi = r.Chance(0.3);
  if (r.Chance(0.3)) spec.dropout = 0.4;
  spec.want_weights = r.Chance(0.5);
  spec.upstream_lse = r.Chance(0.5);
  spec.layout = kLayouts[static_cast<std::size_t>(r.Below(4))];
  spec.seed = seed;
  return spec;
}

TEST_P(Kernels, RandomProblems) {
  for (std::uint64_t seed = 1000; seed < 1000 + kRandomProblems; ++seed) CheckBothTypes(RandomSpec(seed));
}

TEST_P(Kernels, StorageOf16Bits) {
  std::uint64_t seed = 400;
  for (TestScore score : kScores) {
    for (int mask = 0; mask < kMasks; ++mask) {
      for (const Normalizer& normalizer :
           {Normalizer(Softmax{}), Normalizer(Argmax{}), Normalizer(Sample{5})}) {
        Spec spec{.L = 4, .S = 11, .score = score, .mask = static_cast<TestMask>(mask)};
        spec.normalizer = normalizer;
        spec.seed = ++seed;
        if (seed % kEveryNth != 0) continue;
        spec.upstream_lse = seed % 2 == 0;
        CheckAgainstReference<BFloat16>(spec);
        CheckAgainstReference<Float16>(spec);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Kernels, RandomProblemsIn16Bits) {
  for (std::uint64_t seed = 2000; seed < 2000 + kRandomProblems; ++seed) {
    CheckAgainstReference<BFloat16>(RandomSpec(seed));
    CheckAgainstReference<Float16>(RandomSpec(seed));
  }
}

}  // namespace
}  // namespace regard::engine
