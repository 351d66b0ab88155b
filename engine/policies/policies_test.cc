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

// The keys j0 <= j < j1 that query i sees.
std::vector<std::int64_t> Keys(const MaskRule& rule, std::int64_t b, std::int64_t h, std::int64_t i,
                               std::int64_t j0, std::int64_t j1) {
  const MaskRule::Range range = rule.KeysInRange(b, i);
  std::vector<std::uint8_t> allowed(static_cast<std::size_t>(j1 - j0), 1);
  if (rule.pairwise()) rule.TakeAway(b, h, i, j0, j1, allowed.data());
  std::vector<std::int64_t> keys;
  for (std::int64_t j = j0; j < j1; ++j) {
    if (j >= range.begin && j < range.end && allowed[static_cast<std::size_t>(j - j0)]) keys.push_back(j);
  }
  return keys;
}

// What Classify and TakeAway say of each tile, against what they say of single pairs.
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
        std::vector<std::int64_t> expected;
        for (std::int64_t j = tile.j0; j < tile.j1; ++j) {
          if (!Keys(rule, tile.b, tile.h, i, j, j + 1).empty()) expected.push_back(j);
        }
        EXPECT_EQ(Keys(rule, tile.b, tile.h, i, tile.j0, tile.j1), expected) << spec.Text();
        const std::size_t all = static_cast<std::size_t>(tile.j1 - tile.j0);
        if (tile_class != TileClass::kPartial) {
          EXPECT_EQ(expected.size(), tile_class == TileClass::kFull ? all : 0) << spec.Text();
        }
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
