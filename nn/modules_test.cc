#include "nn/modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

using torch::Tensor;

Tensor Random(at::IntArrayRef sizes, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return torch::randn(sizes, generator, torch::kDouble);
}

// Text case 1.
TEST(MaskedSoftmax, PastTheLengthNothingExists) {
  Tensor scores = Random({3, 2, 4}, 1);
  const Tensor lengths = torch::tensor({0, 2, 4});
  scores[0].fill_(std::numeric_limits<double>::quiet_NaN());
  scores[1].slice(1, 2).fill_(std::numeric_limits<double>::infinity());
  scores.requires_grad_();
  const Tensor p = MaskedSoftmax(scores, lengths);
  EXPECT_TRUE(p[0].eq(0).all().item<bool>());
  EXPECT_TRUE(p[1].slice(1, 2).eq(0).all().item<bool>());
  EXPECT_TRUE(torch::allclose(p[1].slice(1, 0, 2), torch::softmax(scores[1].slice(1, 0, 2), -1)));
  EXPECT_TRUE(torch::allclose(p[2], torch::softmax(scores[2], -1)));
  (p * Random({3, 2, 4}, 2)).sum().backward();
  EXPECT_TRUE(scores.grad().isfinite().all().item<bool>());
  EXPECT_TRUE(scores.grad()[0].eq(0).all().item<bool>());
}

TEST(MaskedSoftmax, WrongLengthsAreNamed) {
  try {
    MaskedSoftmax(Random({3, 2, 4}, 1), torch::tensor({1, 2}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("lengths has shape [2] for scores of shape [3, 2, 4]"));
  }
}

// The formula written out in ATen operations.
Tensor Written(AdditiveAttention& a, const Tensor& q, const Tensor& k, const Tensor& v,
               const Tensor& lengths) {
  const Tensor hidden = torch::tanh(a->W_q(q).unsqueeze(2) + a->W_k(k).unsqueeze(1));
  return torch::bmm(MaskedSoftmax(a->w_v(hidden).squeeze(-1), lengths), v);
}

TEST(AdditiveAttention, EqualsItsFormulaForwardAndBackward) {
  torch::manual_seed(3);
  AdditiveAttention attention(5, 3, 7);
  attention->to(torch::kDouble);
  const Tensor q = Random({2, 4, 5}, 1).requires_grad_(), k = Random({2, 6, 3}, 2).requires_grad_();
  const Tensor v = Random({2, 6, 8}, 3).requires_grad_(), lengths = torch::tensor({6, 2});
  std::vector<Tensor> inputs = attention->parameters();
  EXPECT_EQ(inputs.size(), 3u);  // no biases
  inputs.insert(inputs.end(), {q, k, v});
  const Tensor mine = attention(q, k, v, lengths).context, written = Written(attention, q, k, v, lengths);
  EXPECT_TRUE(torch::allclose(mine, written, 1e-10, 1e-10));
  const auto d_mine = torch::autograd::grad({mine.square().sum()}, inputs);
  const auto d_written = torch::autograd::grad({written.square().sum()}, inputs);
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    EXPECT_TRUE(torch::allclose(d_mine[n], d_written[n], 1e-9, 1e-9)) << n;
  }
}

// Text case 1.
TEST(AdditiveAttention, LengthZeroGivesWeightsZeroAndContextZero) {
  AdditiveAttention additive(5, 3, 7);
  DotProductAttention dot;
  const Tensor q = torch::randn({2, 4, 5}), k = torch::randn({2, 6, 3}), v = torch::randn({2, 6, 8});
  const Tensor lengths = torch::tensor({0, 6});
  for (const Context& c :
       {additive(q, k, v, lengths, true), dot(q, torch::randn({2, 6, 5}), v, lengths, true)}) {
    EXPECT_TRUE(c.weights[0].eq(0).all().item<bool>());
    EXPECT_TRUE(c.context[0].eq(0).all().item<bool>());
    EXPECT_TRUE(c.weights[1].gt(0).all().item<bool>());
  }
}

TEST(AdditiveAttention, KeysProjectedOnceGiveTheSame) {
  AdditiveAttention attention(5, 3, 7);
  const Tensor q = torch::randn({2, 4, 5}), k = torch::randn({2, 6, 3}), lengths = torch::tensor({6, 2});
  const Context whole = attention(q, k, k, lengths, true);
  const Context parts = attention->Attend(q, attention->ProjectKeys(k), k, lengths, true);
  EXPECT_TRUE(torch::equal(whole.context, parts.context));
  EXPECT_TRUE(torch::equal(whole.weights, parts.weights));
}

// Case 16
TEST(DotProductAttention, DropoutActsInTrainingOnly) {
  const Tensor q = torch::randn({2, 4, 5}), k = torch::randn({2, 6, 5}), v = torch::randn({2, 6, 3});
  DotProductAttention with(0.5), without(0.0);
  with->eval();
  const Tensor plain = without(q, k, v).context;
  EXPECT_TRUE(torch::equal(with(q, k, v).context, plain));
  EXPECT_TRUE(torch::equal(with(q, k, v).context, plain));
  with->train();
  torch::manual_seed(5);
  const Context first = with(q, k, v, Tensor(), true);
  const Tensor second = with(q, k, v).context;
  torch::manual_seed(5);
  EXPECT_TRUE(torch::equal(with(q, k, v).context, first.context));
  EXPECT_FALSE(torch::equal(second, first.context));
  EXPECT_FALSE(torch::equal(first.context, plain));
  EXPECT_TRUE(torch::allclose(first.weights.sum(-1), torch::ones({2, 4})));
}

TEST(DotProductAttention, WrongDropoutIsNamed) {
  try {
    DotProductAttention attention(1.0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("dropout is 1.0"));
  }
}

}  // namespace
}  // namespace regard::nn
