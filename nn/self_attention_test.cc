#include "nn/self_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/base/error.h"
#include "nn/multi_head.h"

namespace regard::nn {
namespace {

using torch::Tensor;

template <typename F>
void ExpectError(const F& f, const std::string& part) {
  try {
    f();
    FAIL() << "no error; expected one with " << part;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

TEST(AveragePool, IsTheMeanOfTheKeysWithinTheLength) {
  Tensor values = torch::arange(24.0f).view({2, 4, 3});
  values[0].slice(0, 2).fill_(std::numeric_limits<float>::quiet_NaN());
  const Context pooled = AveragePool(values, 2, torch::tensor({2, 4}), true);
  ASSERT_EQ(pooled.context.sizes(), (std::vector<std::int64_t>{2, 2, 3}));
  EXPECT_TRUE(torch::allclose(pooled.context[0][1], values[0].slice(0, 0, 2).mean(0)));
  EXPECT_TRUE(torch::allclose(pooled.context[1][0], values[1].mean(0)));
  EXPECT_TRUE(torch::equal(pooled.weights[0][0], torch::tensor({.5f, .5f, 0.f, 0.f})));
  ExpectError([&] { AveragePool(values, -1); }, "queries is -1");
}

TEST(SimpleSelfAttention, EqualsItsFormulaForEveryScore) {
  torch::manual_seed(1);
  const Tensor x = torch::randn({2, 5, 3}, torch::kDouble).requires_grad_();
  const Tensor dot = torch::matmul(x, x.transpose(1, 2)), norm = x.norm(2, -1, true);
  const std::vector<std::pair<ScoreKind, Tensor>> scores = {
      {ScoreKind::kDot, dot},
      {ScoreKind::kScaledDot, dot / std::sqrt(3.0)},
      {ScoreKind::kCosine, dot / (norm * norm.transpose(1, 2))}};
  for (const auto& [kind, score] : scores) {
    const Context mine = SimpleSelfAttention(kind)->forward(x, {}, true);
    const Tensor weights = torch::softmax(score, -1), written = torch::matmul(weights, x);
    EXPECT_TRUE(torch::allclose(mine.weights, weights));
    EXPECT_TRUE(torch::allclose(mine.context, written));
    const Tensor d_mine = torch::autograd::grad({mine.context.pow(2).sum()}, {x})[0];
    const Tensor d_written = torch::autograd::grad({written.pow(2).sum()}, {x}, {}, true)[0];
    EXPECT_TRUE(torch::allclose(d_mine, d_written, 1e-8, 1e-10));
  }
  ExpectError([] { SimpleSelfAttention bad(ScoreKind::kAdditive); }, "expected the dot");
}

TEST(SelfAttention, PlainMatricesAndLinearLayersAgreeOnTheSameWeights) {
  torch::manual_seed(2);
  SelfAttention plain(SelfAttentionOptions{.input_size = 4, .output_size = 3, .linear = false});
  SelfAttention linear(SelfAttentionOptions{.input_size = 4, .output_size = 3});
  EXPECT_EQ(plain->parameters().size(), 3u);
  EXPECT_GE(plain->W_q.min().item<float>(), 0.f);
  {
    const torch::NoGradGuard no_grad;
    linear->q_layer->weight.copy_(plain->W_q.t());
    linear->k_layer->weight.copy_(plain->W_k.t());
    linear->v_layer->weight.copy_(plain->W_v.t());
  }
  const Tensor x = torch::randn({6, 4});
  const Context a = plain->forward(x, {}, true), b = linear->forward(x, {}, true);
  ASSERT_EQ(a.context.sizes(), (std::vector<std::int64_t>{6, 3}));
  EXPECT_TRUE(torch::allclose(a.context, b.context, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(a.weights.sum(-1), torch::ones({6})));
}

TEST(SelfAttention, CausalLocalAndPaddedSeeOnlyWhatTheyMay) {
  torch::manual_seed(3);
  const Tensor x = torch::randn({2, 6, 4});
  SelfAttention causal(SelfAttentionOptions{.input_size = 4, .output_size = 4, .causal = true});
  EXPECT_TRUE(torch::equal(causal->forward(x, {}, true).weights.triu(1), torch::zeros({2, 6, 6})));
  SelfAttention local(SelfAttentionOptions{.input_size = 4, .output_size = 4, .window = 1});
  const Tensor near = local->forward(x, {}, true).weights;
  EXPECT_TRUE(torch::equal(near, near.triu(-1).tril(1)));
  EXPECT_TRUE(near[0].diagonal(1).gt(0).all().item<bool>());
  const Tensor padded = local->forward(x, torch::tensor({6, 2}), true).weights;
  EXPECT_TRUE(padded[1].slice(1, 2).eq(0).all().item<bool>());
}

TEST(SelfAttention, BiasProjectionAndDropout) {
  torch::manual_seed(4);
  SelfAttention attention(SelfAttentionOptions{
      .input_size = 4, .output_size = 3, .bias = true, .projection_size = 5, .dropout = 0.5});
  EXPECT_EQ(attention->parameters().size(), 8u);
  const Tensor x = torch::randn({2, 6, 4});
  torch::manual_seed(5);
  const Tensor first = attention->forward(x).context;
  EXPECT_EQ(first.sizes(), (std::vector<std::int64_t>{2, 6, 5}));
  EXPECT_FALSE(torch::equal(first, attention->forward(x).context));
  torch::manual_seed(5);
  EXPECT_TRUE(torch::equal(first, attention->forward(x).context));
  attention->eval();
  EXPECT_TRUE(torch::equal(attention->forward(x).context, attention->forward(x).context));
}

TEST(SelfAttention, WrongSizesAreNamed) {
  ExpectError([] { SelfAttention bad(SelfAttentionOptions{.input_size = 0, .output_size = 3}); },
              "sizes 0, 3");
  ExpectError(
      [] {
        SelfAttention bad(
            SelfAttentionOptions{.input_size = 4, .output_size = 3, .linear = false, .bias = true});
      },
      "needs linear layers");
  SelfAttention attention(SelfAttentionOptions{.input_size = 4, .output_size = 3, .context_length = 5});
  ExpectError(
      [&] {
        attention->forward(torch::randn({2, 6, 4}));
      },
      "6 elements long; the context length is 5");
  ExpectError([&] { attention->forward(torch::randn({2, 5, 3})); }, "[2, 5, 3]");
}

TEST(SideBySideHeads, EqualOneCallWithAHeadDimension) {
  torch::manual_seed(6);
  SideBySideHeads apart(
      3, SelfAttentionOptions{.input_size = 8, .output_size = 4, .causal = true, .projection_size = 8});
  const Tensor x = torch::randn({2, 7, 8});
  const auto joined = [&](auto layer) {  // [B, heads, L, c]
    std::vector<Tensor> weights;
    for (SelfAttention& head : apart->heads) weights.push_back(layer(head)->weight);
    return torch::matmul(x, torch::cat(weights).t()).view({2, 7, 3, 4}).transpose(1, 2);
  };
  AttendOptions options;
  options.causal = true;
  options.return_weights = true;
  const AttendResult whole = Attend(joined([](SelfAttention& h) { return h->q_layer; }),
                                    joined([](SelfAttention& h) { return h->k_layer; }),
                                    joined([](SelfAttention& h) { return h->v_layer; }), options);
  const Context mine = apart->forward(x, {}, true);
  EXPECT_TRUE(torch::allclose(mine.weights, whole.weights, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(mine.context, apart->out_layer(whole.out.transpose(1, 2).reshape({2, 7, 12})),
                              1e-4, 1e-6));
}

TEST(SideBySideHeads, EqualTheCombinedMultiHeadFormOfTheSameWeights) {
  torch::manual_seed(7);
  for (const bool bias : {false, true}) {
    SideBySideHeads apart(3, SelfAttentionOptions{.input_size = 8,
                                                  .output_size = 4,
                                                  .bias = bias,
                                                  .causal = true,
                                                  .context_length = 9,
                                                  .projection_size = 12});
    MultiHeadAttention combined(
        MultiHeadOptions{.embed_dim = 12, .num_heads = 3, .query_size = 8, .key_size = 8, .value_size = 8});
    {
      const torch::NoGradGuard no_grad;
      for (std::int64_t h = 0; h < 3; ++h) {
        const torch::nn::Linear parts[] = {apart->heads[h]->q_layer, apart->heads[h]->k_layer,
                                           apart->heads[h]->v_layer};
        for (std::int64_t part = 0; part < 3; ++part) {
          const std::int64_t row = part * 12 + h * 4;
          combined->in_proj_weight.narrow(0, row, 4).copy_(parts[part]->weight);
          if (bias) combined->in_proj_bias.narrow(0, row, 4).copy_(parts[part]->bias);
        }
      }
      combined->out_proj->weight.copy_(apart->out_layer->weight);
      combined->out_proj->bias.copy_(apart->out_layer->bias);
    }
    const Tensor x = torch::randn({2, 9, 8}, torch::requires_grad()), d = torch::randn({2, 9, 12});
    const Context one = apart->forward(x, {}, true);
    const Context all = combined->SelfAttend(x, {.causal = true, .return_weights = true});
    EXPECT_LT((one.weights - all.weights).abs().max().item<double>(), 1e-6);
    EXPECT_LT((one.context - all.context).abs().max().item<double>(), 2e-6);
    const Tensor fused = combined->SelfAttend(x, {.causal = true}).context;  // the path without weights
    EXPECT_LT((one.context - fused).abs().max().item<double>(), 2e-6);
    const Tensor dx = torch::autograd::grad({one.context}, {x}, {d})[0],
                 dx_fused = torch::autograd::grad({fused}, {x}, {d})[0];
    EXPECT_LT((dx - dx_fused).abs().max().item<double>(), 1e-5);
  }
}

}  // namespace
}  // namespace regard::nn
