#include "bench/layers.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/base/error.h"

namespace regard::bench {
namespace {

TEST(FittedExponent, IsThatOfAPowerLawAndOfTheLastThreePoints) {
  EXPECT_NEAR(FittedExponent({1, 2, 4, 8}, {3, 12, 48, 192}), 2, 1e-12);
  EXPECT_NEAR(FittedExponent({1, 2, 4, 8}, {100, 2, 4, 8}), 1, 1e-12);
  EXPECT_THROW(FittedExponent({1}, {1}), Error);
  EXPECT_THROW(FittedExponent({1, 2}, {1, 0}), Error);
  EXPECT_THROW(FittedExponent({2, 2}, {1, 3}), Error);
}

// Memory is counted, not timed: the same on every machine.
TEST(MeasureLayers, MemoryGrowsWithTheLengthAloneForEveryLayer) {
  int calls = 0;
  const auto costs = MeasureLayers({{256, 512, 1024}, {32, 64, 128}, 256, 32, 1}, [&](int done, int all) {
    EXPECT_EQ(done, calls++);
    EXPECT_EQ(all, 18);
  });
  ASSERT_EQ(costs.size(), 3U);
  for (const LayerCosts& own : costs) {
    std::vector<double> lengths, bytes;
    for (const LayerPoint& point : own.by_length) {
      EXPECT_GT(point.seconds, 0);
      // At least the output and the gradient of x.
      EXPECT_GE(point.bytes, static_cast<double>(2 * 4 * point.length * point.width));
      lengths.push_back(static_cast<double>(point.length));
      bytes.push_back(point.bytes);
    }
    EXPECT_NEAR(FittedExponent(lengths, bytes), 1, 0.15) << TheoryOf(own.kind).name;
  }
}

}  // namespace
}  // namespace regard::bench
