#include "models/smoothed_nll.h"

#include <gtest/gtest.h>

#include <cmath>

namespace regard::models {
namespace {

using torch::Tensor;

// Logits ones(3, 4, 10), labels 1, lengths 4, 2 and 0: the mean over all four positions of each row.
TEST(SmoothedNll, PositionsPastALengthCostNothing) {
  const double expected[] = {2.3026, 1.1513, 0};
  const std::int64_t lengths[] = {4, 2, 0};
  for (int row = 0; row < 3; ++row) {
    const Tensor logits = torch::ones({4, 10}).narrow(0, 0, lengths[row]);
    const Tensor labels = torch::ones({4}, torch::kInt64).narrow(0, 0, lengths[row]);
    const auto [sum, nats] = SmoothedNll(logits, labels, 0);
    EXPECT_NEAR(sum.item<double>() / 4, expected[row], 5e-5);
    EXPECT_NEAR(nats.item<double>() / 4, expected[row], 5e-5);
  }
}

TEST(SmoothedNll, EqualsPyTorchsLossAndGradient) {
  torch::manual_seed(1);
  const Tensor labels = torch::randint(0, 11, {7}, torch::kInt64);
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    const Tensor ours = torch::randn({7, 11}, torch::kFloat64).requires_grad_();
    const Tensor theirs = ours.detach().clone().requires_grad_();
    const auto [sum, nats] = SmoothedNll(ours, labels, smoothing);
    const Tensor expected = at::cross_entropy_loss(theirs, labels, {}, at::Reduction::Sum, -100, smoothing);
    EXPECT_NEAR(sum.item<double>(), expected.item<double>(), 1e-12 * std::abs(expected.item<double>()));
    (2 * sum).backward();
    (2 * expected).backward();
    EXPECT_TRUE(torch::allclose(ours.grad(), theirs.grad(), 1e-12, 1e-14));
  }
}

}  // namespace
}  // namespace regard::models
