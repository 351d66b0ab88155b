#include "nn/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

using torch::Tensor;

TEST(Rotary, ProductsDependOnTheDistanceAlone) {
  torch::manual_seed(1);
  for (const RotaryPairs pairs : {RotaryPairs::kNeighbours, RotaryPairs::kHalves}) {
    Rotary rotary(6, 10000, pairs);
    const Tensor q = torch::randn({1, 6}, torch::kDouble), k = torch::randn({1, 6}, torch::kDouble);
    const auto product = [&](std::int64_t i, std::int64_t j) {
      return (rotary->forward(q, i) * rotary->forward(k, j)).sum().item<double>();
    };
    EXPECT_NEAR(product(3, 10), product(1003, 1010), 1e-9);
    EXPECT_GT(std::abs(product(3, 10) - product(3, 11)), 1e-3);
    EXPECT_NEAR(rotary->forward(q, 77).norm().item<double>(), q.norm().item<double>(), 1e-12);
    EXPECT_TRUE(torch::equal(rotary->forward(q, 0), q));
  }
}

TEST(Rotary, TurnsEachPairByItsAngle) {
  Rotary rotary(4, 100);
  const Tensor turned = rotary->forward(torch::tensor({{1., 0., 0., 1.}}, torch::kDouble), 2)[0];
  // Angles 2 and 2 / 10.
  const Tensor expected =
      torch::tensor({std::cos(2.), std::sin(2.), -std::sin(.2), std::cos(.2)}, torch::kDouble);
  EXPECT_TRUE(torch::allclose(turned, expected, 1e-12, 1e-12));
}

TEST(Rotary, APartAtItsOffsetIsAPartOfTheWhole) {
  torch::manual_seed(2);
  Rotary rotary(8, 10000, RotaryPairs::kHalves);
  const Tensor x = torch::randn({2, 3, 16, 8});
  EXPECT_TRUE(torch::equal(rotary->forward(x.slice(2, 7), 7), rotary->forward(x).slice(2, 7)));
  EXPECT_EQ(rotary->forward(x.to(torch::kBFloat16)).scalar_type(), torch::kBFloat16);
}

TEST(Rotary, WrongSizesAreNamed) {
  EXPECT_THROW(Rotary(5), Error);
  EXPECT_THROW(Rotary(4, 0), Error);
  EXPECT_THROW(Rotary(4)->forward(torch::zeros({3, 6})), Error);
}

}  // namespace
}  // namespace regard::nn
