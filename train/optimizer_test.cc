#include "train/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "train/schedule.h"
#include "train/toy_task.h"

namespace regard::train {
namespace {

// Runs 20 steps of ours and of libtorch's on the same gradients, clipped at 1, and returns the largest
// difference.
template <typename Reference, typename ReferenceOptions>
double LargestDifference(const AdamOptions& options, const ReferenceOptions& reference_options) {
  ToyTask ours(64), theirs(64);
  ours.StartEpoch(0, 0);
  theirs.StartEpoch(0, 0);
  Adam adam(ours.module(), options);
  Reference reference(theirs.module().parameters(), reference_options);
  for (int step = 0; step < 20; ++step) {
    adam.ZeroGrad();
    const LossSum loss = ours.Loss(0, {}, 0);
    loss.sum.backward();
    EXPECT_TRUE(adam.Step(0.05, static_cast<double>(loss.tokens), 0.2).applied);

    reference.zero_grad();
    const LossSum same = theirs.Loss(0, {}, 0);
    (same.sum / same.tokens).backward();
    torch::nn::utils::clip_grad_norm_(theirs.module().parameters(), 0.2);
    reference.step();
  }
  double difference = 0;
  for (const auto& item : ours.model->named_parameters()) {
    const torch::Tensor other = theirs.model->named_parameters()[item.key()];
    difference = std::max(difference, (item.value() - other).abs().max().template item<double>());
  }
  return difference;
}

TEST(Adam, EqualsLibtorchsAdam) {
  const double difference = LargestDifference<torch::optim::Adam>(
      {.weight_decay = 0.1, .decoupled = false}, torch::optim::AdamOptions(0.05).weight_decay(0.1));
  EXPECT_LT(difference, 2e-5);
}

TEST(Adam, EqualsLibtorchsAdamW) {
  const double difference = LargestDifference<torch::optim::AdamW>(
      {.weight_decay = 0.1, .decoupled = true}, torch::optim::AdamWOptions(0.05).weight_decay(0.1));
  EXPECT_LT(difference, 2e-5);
}

TEST(Adam, DecaysMatricesAloneWhenAsked) {
  ToyTask with(64), without(64);
  with.StartEpoch(0, 0);
  without.StartEpoch(0, 0);
  Adam decayed(with.module(), {.weight_decay = 0.5, .decay_matrices_only = true}),
      plain(without.module(), {});
  for (auto& [task, adam] : std::vector<std::pair<ToyTask*, Adam*>>{{&with, &decayed}, {&without, &plain}}) {
    task->Loss(0, {}, 0).sum.backward();
    adam->Step(0.1, 1, 1);
  }
  const torch::Tensor start = ToyTask(64).model->first->weight, plain_weight = without.model->first->weight;
  // AdamW: the step of Adam, from weights times 1 - rate * decay
  EXPECT_TRUE(torch::allclose(with.model->first->weight, plain_weight - 0.05 * start, 1e-5, 1e-6));
  EXPECT_TRUE(torch::equal(with.model->first->bias, without.model->first->bias));
}

TEST(Adam, NonFiniteGradientChangesNothing) {
  ToyTask task(64);
  task.StartEpoch(0, 0);
  Adam adam(task.module(), {});
  task.Loss(0, {}, 0).sum.backward();
  const torch::Tensor before = task.model->first->weight.detach().clone();
  task.model->second->bias.mutable_grad()[0] = std::numeric_limits<float>::infinity();
  const StepReport report = adam.Step(0.1, 1, 1);
  EXPECT_FALSE(report.applied);
  EXPECT_TRUE(torch::equal(before, task.model->first->weight));
  for (const auto& [name, tensor] : adam.State()) EXPECT_EQ(tensor.abs().sum().item<double>(), 0) << name;
}

TEST(Adam, LeavesParametersWithoutGradientAlone) {
  ToyTask task(64);
  task.StartEpoch(0, 0);
  Adam adam(task.module(), {.weight_decay = 0.1});
  task.Loss(0, {}, 0).sum.backward();
  task.model->first->weight.mutable_grad() = torch::Tensor();
  const torch::Tensor first = task.model->first->weight.detach().clone();
  const torch::Tensor second = task.model->second->weight.detach().clone();
  EXPECT_TRUE(adam.Step(0.1, 1, 0).applied);
  EXPECT_TRUE(torch::equal(first, task.model->first->weight));
  EXPECT_FALSE(torch::equal(second, task.model->second->weight));
}

TEST(Adam, LoadRejectsAnotherShape) {
  ToyTask task(64);
  Adam adam(task.module(), {});
  NamedTensors state = adam.State();
  state[0].second = torch::zeros({3});
  EXPECT_THAT(
      [&] { adam.Load(state); },
      testing::ThrowsMessage<Error>("optimizer state \"first.weight.mean\" has shape [3], expected [16, 5]"));
}

TEST(GlobalNorm, EqualsTheNormOfAllElements) {
  torch::manual_seed(1);
  const std::vector<torch::Tensor> tensors = {torch::randn({37}), torch::randn({5, 9}).t(),
                                              torch::randn({4}, torch::kDouble),
                                              torch::randn({10, 6}).slice(1, 0, 3)};
  double sum = 0;
  for (const torch::Tensor& tensor : tensors) sum += tensor.to(torch::kDouble).square().sum().item<double>();
  EXPECT_NEAR(GlobalNorm(tensors), std::sqrt(sum), 1e-6);
  // Beyond the range of float squares.
  EXPECT_NEAR(GlobalNorm({torch::full({4}, 1e30)}) / 2e30, 1, 1e-6);
}

TEST(Schedule, WarmsUpLinearlyThenFollowsItsKind) {
  Schedule schedule{.kind = Schedule::Kind::kCosine, .rate = 2, .warmup_steps = 4, .floor = 0.1};
  EXPECT_DOUBLE_EQ(schedule.At(0, 104), 0.5);
  EXPECT_DOUBLE_EQ(schedule.At(3, 104), 2);
  EXPECT_NEAR(schedule.At(53, 104), 2 * (0.1 + 0.9 / 2), 1e-12);
  EXPECT_NEAR(schedule.At(103, 104), 0.2, 1e-12);
  EXPECT_NEAR(schedule.At(500, 104), 0.2, 1e-12);
  schedule.kind = Schedule::Kind::kInverseSqrt;
  EXPECT_DOUBLE_EQ(schedule.At(1, 0), 1);
  EXPECT_DOUBLE_EQ(schedule.At(3, 0), 2);
  EXPECT_DOUBLE_EQ(schedule.At(15, 0), 1);
  schedule.kind = Schedule::Kind::kConstant;
  EXPECT_DOUBLE_EQ(schedule.At(1000, 0), 2);
}

TEST(Schedule, UnknownNameListsTheKnown) {
  EXPECT_EQ(ParseScheduleKind("invsqrt"), Schedule::Kind::kInverseSqrt);
  EXPECT_THAT(
      [] { ParseScheduleKind("step"); },
      testing::ThrowsMessage<UsageError>("unknown schedule \"step\": expected constant, cosine or invsqrt"));
}

}  // namespace
}  // namespace regard::train
