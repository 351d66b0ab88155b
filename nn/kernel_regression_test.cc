#include "nn/kernel_regression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

using torch::Tensor;

Tensor Doubles(const std::vector<double>& x) { return torch::tensor(x, torch::kDouble); }

KernelRegression OfWidth(double h, ScoreKind kernel = ScoreKind::kGaussian) {
  return KernelRegression(KernelRegressionOptions{.kernel = kernel, .widths = {h}});
}

TEST(KernelRegression, PublishedPredictions) {
  // Three queries at distances 1,1,3,5 / 3,1,1,3 / 5,3,1,1 from four keys on a line.
  const Tensor keys = Doubles({1, 3, 5, 7}), y = Doubles({1, 3, 5, 7}), queries = Doubles({2, 4, 6});
  const Tensor f = OfWidth(1)->forward(queries, keys, y).prediction;
  EXPECT_NEAR(f[0].item<double>(), 2.02723928, 1e-8);
  EXPECT_NEAR(f[1].item<double>(), 4, 1e-8);
  EXPECT_NEAR(f[2].item<double>(), 5.97276072, 1e-8);
}

TEST(KernelRegression, PublishedWeights) {
  const Tensor keys = Doubles({1, 2, 3, 4, 5});
  const Tensor weights = OfWidth(10)->forward(Doubles({1}), keys, keys, false, true).weights[0];
  const std::vector<double> expected = {.206001865, .204974427, .201922755, .196937264, .190163689};
  // 1 / h is kept in float32.
  for (std::int64_t j = 0; j < 5; ++j)
    EXPECT_NEAR(weights[j].item<double>(), expected[static_cast<std::size_t>(j)], 1e-9);
}

// Case 1
TEST(KernelRegression, TwoKeysAtTheSameDistanceShareAtAnyWidth) {
  const Tensor keys = Doubles({-1.5, -.5, .5, 1.5});
  const Tensor weights = OfWidth(.02)->forward(Doubles({0}), keys, keys, false, true).weights[0];
  EXPECT_TRUE(torch::allclose(weights, Doubles({0, .5, .5, 0})));
}

// Case 2
TEST(KernelRegression, FarAwayTheNearestKeyDecides) {
  EXPECT_DOUBLE_EQ(OfWidth(1)
                       ->forward(Doubles({100}), Doubles({0, 1, 2, 3}), Doubles({0, 1, 4, 9}))
                       .prediction.item<double>(),
                   9);
  EXPECT_EQ(OfWidth(1, ScoreKind::kEpanechnikov)
                ->forward(Doubles({100}), Doubles({0, 1}), Doubles({5, 6}))
                .prediction.item<double>(),
            0);
}

// Case 3
TEST(KernelRegression, IntegersGiveRealPredictions) {
  const Tensor keys = torch::arange(4), y = torch::tensor({0, 1, 4, 9});
  const Tensor f = OfWidth(1)->forward(torch::tensor({1}), keys, y).prediction;
  EXPECT_EQ(f.scalar_type(), torch::kFloat);
  EXPECT_NE(f.item<float>(), std::round(f.item<float>()));
}

// Case 9
TEST(KernelRegression, LeaveOneOutWithOneFarPoint) {
  const Tensor x = Doubles({0, .1, .2, .3, 1000}), y = Doubles({0, 1, 0, 1, 5});
  const Tensor f = OfWidth(.1)->forward(x, x, y, true).prediction;
  EXPECT_NEAR((f - y).square().mean().item<double>(), 3.7928698573, 2e-8);
}

TEST(KernelRegression, AverageAndManyValues) {
  KernelRegression average(KernelRegressionOptions{.width = KernelWidth::kAverage});
  const Tensor keys = torch::randn({6, 2}), y = torch::randn({6, 3});
  const Tensor f = average->forward(torch::randn({4, 2}), keys, y).prediction;
  ASSERT_EQ(f.sizes(), (std::vector<std::int64_t>{4, 3}));
  EXPECT_TRUE(torch::allclose(f[3], y.mean(0), 1e-5, 1e-6));
  EXPECT_TRUE(average->parameters().empty());
}

// Case 10
TEST(KernelRegression, ALearnedWidthCollapsesOnlyWhereThePointIsAmongItsKeys) {
  torch::manual_seed(1);
  const Tensor x = std::get<0>((torch::rand({50}) * 5).sort());
  const Tensor y = 2 * torch::sin(x) + x.pow(0.8) + 0.5 * torch::randn({50});
  const auto train = [&](bool leave_self_out) {
    KernelRegression model(KernelRegressionOptions{.width = KernelWidth::kLearned, .widths = {1}});
    torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.05));
    for (int step = 0; step < 400; ++step) {
      sgd.zero_grad();
      const Tensor loss = (model->forward(x, x, y, leave_self_out).prediction - y).square().sum();
      loss.backward();
      sgd.step();
    }
    return std::abs(model->precision.item<float>());
  };
  const float apart = train(true), among = train(false);
  EXPECT_LT(apart, 12.f);
  EXPECT_GT(among, 2 * apart);
}

TEST(KernelRegression, ManyDimensionsAndWidths) {
  torch::manual_seed(2);
  const Tensor x = torch::randn({5, 1000}, torch::kDouble), y = torch::randn({5}, torch::kDouble);
  const Tensor f = OfWidth(5)->forward(x, x, y, true).prediction;
  EXPECT_TRUE(f.isfinite().all().item<bool>());
  KernelRegression two(KernelRegressionOptions{.widths = {1, 2}});
  EXPECT_EQ(two->forward(torch::randn({3, 2}), torch::randn({4, 2}), torch::randn({4})).prediction.size(0),
            3);
  try {
    two->forward(torch::randn({3}), torch::randn({4}), torch::randn({4}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("2 widths for 1 dimensions"));
  }
  EXPECT_THROW(OfWidth(0), Error);
  EXPECT_THROW(OfWidth(std::numeric_limits<double>::quiet_NaN()), Error);
}

}  // namespace
}  // namespace regard::nn
