#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/policies/mask.h"
#include "engine/policies/random.h"
#include "engine/testing/case.h"

namespace regard::engine {
namespace {

TEST(RandomRow, DependsOnSeedStreamAndEveryIndex) {
  const auto bits = [](std::uint64_t seed, Stream stream, std::int64_t b, std::int64_t h, std::int64_t i,
                       std::int64_t j) { return RandomRow(seed, stream, b, h, i).Bits(j); };
  const std::uint64_t here = bits(1, Stream::kDropout, 2, 3, 4, 5);
  EXPECT_EQ(here, bits(1, Stream::kDropout, 2, 3, 4, 5));
  EXPECT_NE(here, bits(2, Stream::kDropout, 2, 3, 4, 5));
  EXPECT_NE(here, bits(1, Stream::kGumbel, 2, 3, 4, 5));
  EXPECT_NE(here, bits(1, Stream::kDropout, 3, 2, 4, 5));
  EXPECT_NE(here, bits(1, Stream::kDropout, 2, 4, 3, 5));
  EXPECT_NE(here, bits(1, Stream::kDropout, 2, 3, 5, 4));
}

TEST(RandomRow, StaysTheSameFromVersionToVersion) {
  // A seed that somebody noted down must give the same dropout tomorrow.
  EXPECT_EQ(RandomRow(42, Stream::kDropout, 0, 1, 2).Bits(3), 10051348672917663098u);
}

TEST(DropoutRule, KeepsTheRightShare) {
  for (double p : {0.1, 0.5, 0.9}) {
    const DropoutRule rule(p);
    EXPECT_DOUBLE_EQ(rule.scale(), 1 / (1 - p));
    constexpr int kRows = 100, kKeys = 1000;
    int kept = 0;
    for (int i = 0; i < kRows; ++i) {
      const RandomRow row(7, Stream::kDropout, 0, 0, i);
      for (int j = 0; j < kKeys; ++j) kept += rule.Keeps(row.Bits(j));
    }
    const double n = kRows * kKeys;
    EXPECT_NEAR(kept / n, 1 - p, 5 * std::sqrt(p * (1 - p) / n));
  }
  EXPECT_FALSE(DropoutRule(0).active());
}

TEST(Gumbel, HasItsMeanAndVariance) {
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0;
  const RandomRow row(5, Stream::kGumbel, 1, 2, 3);
  for (int j = 0; j < kDraws; ++j) {
    const double g = row.Gumbel(j);
    ASSERT_TRUE(std::isfinite(g));
    sum += g, squares += g * g;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.5772156649, 0.02);  // Euler's constant
  EXPECT_NEAR(squares / kDraws - mean * mean, 3.14159265 * 3.14159265 / 6, 0.05);
}

// What Classify and Keys say of each tile, against Keys of single pairs.
TEST(MaskRule, TilesAgreeWithTheirPairs) {
  int classes[3] = {};
  for (int mask = 0; mask <= static_cast<int>(TestMask::kMany); ++mask) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Spec spec{.L = 9, .S = 40, .mask = static_cast<TestMask>(mask), .seed = seed};
      const Case<float> c(spec);
      const MaskRule rule(c.options.mask, spec.L, spec.S);
      TestRandom random(seed);
      const std::int64_t i0 = random.Below(9), j0 = random.Below(40);
      const Tile tile{random.Below(2),
                      random.Below(4),
                      i0,
                      i0 + 1 + random.Below(9 - i0),
                      j0,
                      j0 + 1 + random.Below(40 - j0)};
      const TileClass tile_class = rule.Classify(tile);
      ++classes[static_cast<int>(tile_class)];
      for (std::int64_t i = tile.i0; i < tile.i1; ++i) {
        std::vector<std::int32_t> expected, keys(40);
        for (std::int64_t j = tile.j0; j < tile.j1; ++j) {
          std::int32_t key;
          const Tile pair{tile.b, tile.h, i, i + 1, j, j + 1};
          if (rule.Keys(pair, TileClass::kPartial, i, &key) == 1) {
            expected.push_back(static_cast<std::int32_t>(j - tile.j0));
          }
        }
        if (tile_class == TileClass::kEmpty) {
          EXPECT_TRUE(expected.empty()) << spec.Text();
          continue;
        }
        keys.resize(rule.Keys(tile, tile_class, i, keys.data()));
        EXPECT_EQ(keys, expected) << spec.Text();
      }
    }
  }
  for (int count : classes) EXPECT_GT(count, 10);
}

TEST(MaskRule, WindowsOfAnySizeDoNotOverflow) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  Mask mask;
  mask.window = Window{kFar, kFar, Corner::kBottomRight};
  EXPECT_EQ(MaskRule(mask, 10, 5).Classify({0, 0, 0, 10, 0, 5}), TileClass::kFull);
  mask.window = Window{-kFar, kFar, Corner::kBottomRight};
  EXPECT_EQ(MaskRule(mask, 10, 5).Classify({0, 0, 0, 10, 0, 5}), TileClass::kEmpty);
}

TEST(MaskRule, EmptyTilesAreSeenAsSuch) {
  Mask mask;
  mask.causal = Causal{};
  const MaskRule causal(mask, 256, 256);
  EXPECT_EQ(causal.Classify({0, 0, 0, 32, 128, 256}), TileClass::kEmpty);
  EXPECT_EQ(causal.Classify({0, 0, 96, 128, 0, 128}), TileClass::kPartial);
  EXPECT_EQ(causal.Classify({0, 0, 128, 160, 0, 128}), TileClass::kFull);
}

}  // namespace
}  // namespace regard::engine
