#include "nn/choice_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

using torch::Tensor;

TEST(ChoiceAttention, SoftWeighsAndHardTakesTheLargestInEvaluation) {
  torch::manual_seed(1);
  const Tensor q = torch::randn({2, 3, 4}), k = torch::randn({2, 5, 4}), v = torch::randn({2, 5, 6});
  const Tensor lengths = torch::tensor({5, 2});
  const Choice soft = ChoiceAttention(AttentionKind::kSoft)->forward(q, k, v, lengths, true);
  EXPECT_FALSE(soft.index.defined());
  EXPECT_TRUE(torch::allclose(soft.context, torch::matmul(soft.weights, v), 1e-5, 1e-6));
  ChoiceAttention hard(AttentionKind::kHard);
  hard->eval();
  const Choice choice = hard->forward(q, k, v, lengths, true);
  EXPECT_TRUE(torch::equal(choice.index, soft.weights.argmax(-1)));
  EXPECT_TRUE(torch::equal(choice.context, v.gather(1, choice.index.unsqueeze(-1).expand({2, 3, 6}))));
  EXPECT_TRUE(torch::allclose(choice.log_prob.exp(), soft.weights.amax(-1), 1e-5, 1e-6));
}

TEST(ChoiceAttention, DrawsFollowTheWeightsAndTorchsGenerator) {
  torch::manual_seed(2);
  ChoiceAttention hard(AttentionKind::kHard);
  const Tensor q = torch::randn({1, 1, 4}), k = torch::randn({1, 3, 4}), v = torch::eye(3).unsqueeze(0);
  const Tensor many = q.expand({4000, 1, 4}), keys = k.expand({4000, 3, 4}), values = v.expand({4000, 3, 3});
  torch::manual_seed(3);
  const Choice first = hard->forward(many, keys, values, {}, true);
  torch::manual_seed(3);
  EXPECT_TRUE(torch::equal(first.index, hard->forward(many, keys, values).index));
  EXPECT_FALSE(torch::equal(first.index, hard->forward(many, keys, values).index));
  const Tensor share = first.context.mean(0)[0], p = first.weights[0][0];
  // Four standard errors of a share of 4,000 draws are at most 0.032.
  EXPECT_LE((share - p).abs().max().item<float>(), 0.032f) << share << p;
  EXPECT_TRUE(torch::allclose(first.entropy[0][0], -(p * p.log()).sum()));
}

// The gradient of the estimator, averaged over many draws, is that of the expected loss sum_j p_j loss_j.
TEST(ScoreFunctionLoss, LearnsTheExpectedLoss) {
  torch::manual_seed(4);
  const Tensor k = torch::randn({1, 3, 4}), loss_of_key = torch::tensor({1.f, 3.f, -2.f});
  const Tensor q = torch::randn({1, 1, 4}).requires_grad_();
  constexpr std::int64_t kDraws = 40000;
  ChoiceAttention hard(AttentionKind::kHard);
  const Choice choice =
      hard->forward(q.expand({kDraws, 1, 4}), k.expand({kDraws, 3, 4}), torch::zeros({kDraws, 3, 1}));
  const Tensor losses = loss_of_key.index_select(0, choice.index.flatten());
  const Tensor estimated = torch::autograd::grad({ScoreFunctionLoss(losses, choice, 0.5, 0.1)}, {q})[0];
  const Tensor p = torch::softmax(torch::matmul(q, k.transpose(1, 2)) / 2, -1).flatten();
  const Tensor expected =
      torch::autograd::grad({(p * loss_of_key).sum() + 0.1 * (p * p.log()).sum()}, {q})[0];
  EXPECT_LE((estimated - expected).abs().max().item<float>(), 0.05f) << estimated << expected;
  EXPECT_GE(expected.abs().max().item<float>(), 0.2f);
}

TEST(ScoreFunctionLoss, TakesABaselineForEachSample) {
  Choice choice;
  choice.log_prob = torch::tensor({{-1.f}, {-2.f}});
  choice.entropy = torch::zeros({2, 1});
  const Tensor losses = torch::tensor({3.f, 5.f});
  EXPECT_EQ(ScoreFunctionLoss(losses, choice, torch::tensor({1.f, 1.f})).item<float>(),
            ScoreFunctionLoss(losses, choice, 1.0).item<float>());
  // (3 + (3 - 1) (-1) + 5 + (5 - 4) (-2)) / 2
  EXPECT_EQ(ScoreFunctionLoss(losses, choice, torch::tensor({1.f, 4.f})).item<float>(), 2);
  EXPECT_THROW(ScoreFunctionLoss(losses, choice, torch::ones({3})), Error);
}

TEST(ScoreFunctionLoss, NeedsASampledChoice) {
  const Choice soft =
      ChoiceAttention()->forward(torch::ones({2, 1, 4}), torch::ones({2, 3, 4}), torch::ones({2, 3, 1}));
  EXPECT_THROW(ScoreFunctionLoss(torch::ones({2}), soft, 0), Error);
  MovingBaseline baseline(0.5);
  EXPECT_FALSE(baseline.value());
  baseline.Add(4), baseline.Add(2);
  EXPECT_EQ(*baseline.value(), 3);
}

}  // namespace
}  // namespace regard::nn
