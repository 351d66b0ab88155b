#include "nn/positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

using torch::Tensor;

// Text case 12.
TEST(Sinusoid, AnOddWidthHasOneCosineLess) {
  const Tensor table = Sinusoid(3, 5);
  ASSERT_EQ(table.sizes(), at::IntArrayRef({3, 5}));
  for (int p = 0; p < 3; ++p) {
    for (int column = 0; column < 5; ++column) {
      const double angle = p / std::pow(10000.0, (column - column % 2) / 5.0);
      EXPECT_NEAR(table[p][column].item<double>(), column % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-7);
    }
  }
}

TEST(Sinusoid, EachPairOfColumnsRepeatsWithItsOwnPeriod) {
  const std::int64_t width = 8;
  const Tensor table = Sinusoid(200, width).to(torch::kDouble);
  for (std::int64_t i = 0; i < width / 2; ++i) {
    const double period = 2 * std::numbers::pi * std::pow(10000.0, 2.0 * i / width);
    // The column is the sinusoid of that period, wherever it is looked at.
    const Tensor angle = torch::arange(200, torch::kDouble) * (2 * std::numbers::pi / period);
    EXPECT_LT((table.select(1, 2 * i) - angle.sin()).abs().max().item<double>(), 1e-6);
  }
}

TEST(Sinusoid, AShiftIsOneRotationWhereverItStarts) {
  const std::int64_t width = 6, shift = 5;
  const Tensor table = Sinusoid(100, width);
  for (std::int64_t i = 0; i < width / 2; ++i) {
    const double turn = shift / std::pow(10000.0, 2.0 * i / width);
    const Tensor rotation =
        torch::tensor({{std::cos(turn), std::sin(turn)}, {-std::sin(turn), std::cos(turn)}}, torch::kFloat);
    const Tensor pair = table.narrow(1, 2 * i, 2);
    const Tensor turned = pair.narrow(0, 0, 95).matmul(rotation.t());
    EXPECT_LT((turned - pair.narrow(0, shift, 95)).abs().max().item<double>(), 1e-6);
  }
}

TEST(Positions, AreAddedFromTheOffsetOn) {
  for (const PositionKind kind : {PositionKind::kSinusoidal, PositionKind::kLearned}) {
    Positions positions(kind, 10, 4);
    const Tensor x = torch::randn({2, 10, 4});
    const Tensor whole = positions(x);
    EXPECT_TRUE(positions(x.narrow(1, 6, 4), 6).equal(whole.narrow(1, 6, 4)));
    EXPECT_THROW(positions(x, 1), Error);
    EXPECT_EQ(positions->parameters().size(), kind == PositionKind::kLearned ? 1u : 0u);
  }
  EXPECT_TRUE(Positions(PositionKind::kSinusoidal, 3, 5)(torch::zeros({1, 3, 5}))[0].equal(Sinusoid(3, 5)));
}

}  // namespace
}  // namespace regard::nn
