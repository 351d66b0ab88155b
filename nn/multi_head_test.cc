#include "nn/multi_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

void ExpectNear(const Tensor& a, const Tensor& b, double tolerance = 2e-6) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LT((a - b).abs().max().item<double>(), tolerance);
}

// The module and torch's with equal weights; torch's works on [L, B, E].
struct Twins {
  Twins(std::int64_t key_size, std::int64_t value_size, bool bias)
      : ours(MultiHeadOptions{
            .embed_dim = 12, .num_heads = 3, .key_size = key_size, .value_size = value_size, .bias = bias}),
        theirs(torch::nn::MultiheadAttentionOptions(12, 3).bias(bias).kdim(key_size).vdim(value_size)) {
    torch::NoGradGuard no_grad;
    for (auto& p : theirs->parameters()) p.uniform_(-0.5, 0.5);
    ours->CopyFrom(theirs);
  }
  MultiHeadAttention ours;
  torch::nn::MultiheadAttention theirs;
};

TEST(MultiHead, TorchsWeightsGiveTorchsOutputsWeightsAndGradients) {
  torch::manual_seed(1);
  for (const bool bias : {true, false}) {
    for (const auto& [key_size, value_size] : {std::pair<std::int64_t, std::int64_t>{12, 12}, {5, 5}}) {
      Twins twins(key_size, value_size, bias);
      const Tensor q = torch::randn({2, 4, 12}, torch::requires_grad()), k = torch::randn({2, 6, key_size}),
                   v = torch::randn({2, 6, value_size}), d = torch::randn({2, 4, 12});
      const Context out = twins.ours(q, k, v, AttendOptions{.return_weights = true});
      const auto [expected, weights] =
          twins.theirs(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), Tensor(), true);
      ExpectNear(out.context, expected.transpose(0, 1));
      ExpectNear(out.weights.mean(1), weights);  // torch's are the mean over the heads
      std::vector<Tensor> leaves{q}, their_leaves{q};
      for (const auto& p : twins.ours->named_parameters()) {
        leaves.push_back(p.value());
        their_leaves.push_back(twins.theirs->named_parameters()[p.key()]);
      }
      const auto got = torch::autograd::grad({out.context}, leaves, {d});
      const auto wanted = torch::autograd::grad({expected.transpose(0, 1)}, their_leaves, {d});
      for (std::size_t i = 0; i < got.size(); ++i) ExpectNear(got[i], wanted[i], 1e-5);
    }
  }
}

// The path without copies and the general one, with every gradient.
TEST(MultiHead, SelfAttentionInOneProductIsTheSameAsInThree) {
  torch::manual_seed(2);
  for (const std::int64_t key_heads : {4, 2, 1}) {
    MultiHeadAttention attention(
        MultiHeadOptions{.embed_dim = 16, .num_heads = 4, .num_key_heads = key_heads});
    const Tensor x = torch::randn({3, 7, 16}, torch::requires_grad()), d = torch::randn({3, 7, 16});
    AttendOptions options{.causal = true, .lengths = torch::tensor({7, 3, 0})};
    const Tensor one = attention->SelfAttend(x, options).context;
    const Tensor three = attention(x, x.clone(), x, options).context;
    ExpectNear(one, three);
    std::vector<Tensor> leaves = attention->parameters();
    leaves.push_back(x);
    const auto a = torch::autograd::grad({one}, leaves, {d}), b = torch::autograd::grad({three}, leaves, {d});
    for (std::size_t i = 0; i < a.size(); ++i) ExpectNear(a[i], b[i], 1e-5);
  }
}

TEST(MultiHead, AnyScoreIsTheOperatorsOnItsHeads) {
  torch::manual_seed(3);
  MultiHeadAttention attention(MultiHeadOptions{.embed_dim = 8, .num_heads = 2});
  const Tensor x = torch::randn({2, 5, 8});
  const Tensor w = torch::randn({2, 4}, torch::requires_grad());
  const AttendOptions options{.score = ScoreKind::kAdditive, .additive_weight = w, .return_weights = true};
  const Context got = attention->SelfAttend(x, options);
  const Tensor qkv = torch::linear(x, attention->in_proj_weight, attention->in_proj_bias);
  const auto parts = qkv.view({2, 5, 3, 2, 4}).permute({2, 0, 3, 1, 4}).unbind(0);
  // w·tanh(q + k), written out
  const Tensor scores =
      ((parts[0].unsqueeze(3) + parts[1].unsqueeze(2)).tanh() * w.view({1, 2, 1, 1, 4})).sum(-1);
  ExpectNear(got.weights, torch::softmax(scores, -1));
  const Tensor context = torch::softmax(scores, -1).matmul(parts[2]).transpose(1, 2).flatten(2);
  ExpectNear(got.context, attention->out_proj(context));
  got.context.sum().backward();
  EXPECT_GT(w.grad().abs().min().item<double>(), 0);
}

// Rows of a projection that are head h's, of heads of width D each.
Tensor HeadRows(const Tensor& weight, std::int64_t first, std::int64_t h, std::int64_t width) {
  return weight.narrow(0, (first + h) * width, width);
}

TEST(MultiHead, HeadsOfSeveralScoresAreSeparateAttentions) {
  torch::manual_seed(6);
  const std::int64_t width = 3;
  const std::vector<ScoreKind> scores = {ScoreKind::kScaledDot, ScoreKind::kAdditive, ScoreKind::kAdditive,
                                         ScoreKind::kScaledDot};
  for (const std::int64_t key_heads : {4, 2, 1}) {
    MultiHeadAttention attention(MultiHeadOptions{
        .embed_dim = 12, .num_heads = 4, .num_key_heads = key_heads, .bias = false, .scores = scores});
    EXPECT_EQ(attention->additive_weight.sizes(), at::IntArrayRef({2, width}));
    const Tensor x = torch::randn({2, 5, 12}, torch::requires_grad());
    const Tensor lengths = key_heads == 4 ? torch::tensor({5, 3})  // per batch, or per query
                                          : torch::tensor({{5, 4, 3, 0, 1}, {2, 0, 5, 1, 4}});
    const Tensor bias = torch::randn({4, 5, 5});
    const Context got = attention->SelfAttend(x, {.lengths = lengths, .return_weights = true});
    const Tensor with_bias = attention->SelfAttend(x, {.bias = bias}).context;

    std::vector<Tensor> contexts, weights, biased;
    for (std::int64_t h = 0; h < 4; ++h) {
      const std::int64_t g = h / (4 / key_heads);
      const Tensor& all = attention->in_proj_weight;
      const Tensor w_q = HeadRows(all, 0, h, width), w_k = HeadRows(all, 4, g, width),
                   v = torch::linear(x, HeadRows(all, 4 + key_heads, g, width));
      Tensor s;  // [2, 5, 5]
      if (scores[h] == ScoreKind::kAdditive) {
        const Tensor sum = torch::linear(x, w_q).unsqueeze(2) + torch::linear(x, w_k).unsqueeze(1);
        s = sum.tanh().matmul(attention->additive_weight[h - 1]);
      } else {
        s = torch::linear(x, w_q).matmul(torch::linear(x, w_k).transpose(1, 2)) / std::sqrt(3.0);
      }
      const Tensor p = MaskedSoftmax(s, lengths);
      contexts.push_back(p.matmul(v));
      weights.push_back(p);
      biased.push_back(torch::softmax(s + bias[h], -1).matmul(v));
    }
    const Tensor expected = attention->out_proj(torch::cat(contexts, -1));
    ExpectNear(got.context, expected);
    ExpectNear(got.weights, torch::stack(weights, 1));
    ExpectNear(with_bias, attention->out_proj(torch::cat(biased, -1)));
    std::vector<Tensor> leaves = attention->parameters();
    leaves.push_back(x);
    const Tensor d = torch::randn_like(expected);
    const auto a = torch::autograd::grad({got.context}, leaves, {d}),
               b = torch::autograd::grad({expected}, leaves, {d});
    for (std::size_t i = 0; i < a.size(); ++i) ExpectNear(a[i], b[i], 1e-5);
  }
}

TEST(MultiHead, HeadsOfSeveralScoresDropApartAndUseTheCache) {
  torch::manual_seed(7);
  MultiHeadAttention attention(MultiHeadOptions{.embed_dim = 4,
                                                .num_heads = 2,
                                                .dropout = 0.5,
                                                .scores = {ScoreKind::kScaledDot, ScoreKind::kAdditive}});
  {
    torch::NoGradGuard no_grad;
    attention->in_proj_weight.narrow(0, 0, 8).zero_();  // both heads: equal weights
    attention->in_proj_weight.narrow(0, 10, 2).copy_(attention->in_proj_weight.narrow(0, 8, 2));
  }
  const Tensor x = torch::randn({3, 9, 4});
  const Tensor heads = attention->SelfHeads(x, {.seed = 5}, nullptr).context;
  EXPECT_TRUE(heads.equal(attention->SelfHeads(x, {.seed = 5}, nullptr).context));
  EXPECT_FALSE(heads.narrow(2, 0, 2).allclose(heads.narrow(2, 2, 2)));
  attention->eval();
  KeyValueCache cache;
  const AttendOptions causal{.corner = Corner::kBottomRight, .causal = true};
  const Tensor first = attention->SelfAttend(x.narrow(1, 0, 7), causal, &cache).context,
               second = attention->SelfAttend(x.narrow(1, 7, 2), causal, &cache).context;
  ExpectNear(torch::cat({first, second}, 1), attention->SelfAttend(x, {.causal = true}).context);
}

// Text case 13.
TEST(MultiHead, ACacheGivesWhatOnePassGives) {
  torch::manual_seed(4);
  torch::NoGradGuard no_grad;
  MultiHeadAttention attention(MultiHeadOptions{.embed_dim = 8, .num_heads = 4, .num_key_heads = 2});
  const Tensor x = torch::randn({2, 40, 8});
  const Tensor whole = attention->SelfAttend(x, {.causal = true}).context;
  KeyValueCache cache;
  const AttendOptions options{.corner = Corner::kBottomRight, .causal = true};
  std::vector<Tensor> pieces;
  std::int64_t begin = 0;
  for (const std::int64_t length : {7, 1, 20, 12}) {
    pieces.push_back(attention->SelfAttend(x.narrow(1, begin, length), options, &cache).context);
    begin += length;
  }
  ExpectNear(torch::cat(pieces, 1), whole);
  EXPECT_EQ(cache.length(), 40);

  // Rows change places, and one goes twice.
  cache.Clear();
  attention->SelfAttend(x.narrow(1, 0, 39), options, &cache);
  cache.Select(torch::tensor({1, 0, 1}));
  const Tensor last =
      attention->SelfAttend(x.narrow(1, 39, 1).index_select(0, torch::tensor({1, 0, 1})), options, &cache)
          .context;
  ExpectNear(last, whole.narrow(1, 39, 1).index_select(0, torch::tensor({1, 0, 1})));
}

TEST(MultiHead, DropoutIsTheSeedsAndOnlyWhileTraining) {
  torch::manual_seed(5);
  MultiHeadAttention attention(MultiHeadOptions{.embed_dim = 8, .num_heads = 2, .dropout = 0.5});
  const Tensor x = torch::randn({2, 6, 8});
  const auto out = [&](std::int64_t seed) { return attention->SelfAttend(x, {.seed = seed}).context; };
  EXPECT_TRUE(out(7).equal(out(7)));
  EXPECT_FALSE(out(7).equal(out(8)));
  EXPECT_FALSE(out(0).equal(out(0)));  // torch's generator goes on
  attention->eval();
  EXPECT_TRUE(out(7).equal(out(8)));
}

TEST(MultiHead, SizesThatDoNotFitAreNamed) {
  const auto make = [](const MultiHeadOptions& options) { MultiHeadAttention attention(options); };
  EXPECT_THAT([&] { make({.embed_dim = 10, .num_heads = 4}); },
              ThrowsMessage<Error>(HasSubstr("embed_dim is 10; expected a multiple of the 4 heads")));
  EXPECT_THAT([&] { make({.embed_dim = 12, .num_heads = 4, .num_key_heads = 3}); },
              ThrowsMessage<Error>(HasSubstr("num_key_heads is 3; expected a divisor of the 4 heads")));
  EXPECT_THAT([&] { make({.embed_dim = 12, .num_heads = 4, .scores = {ScoreKind::kDot}}); },
              ThrowsMessage<Error>(HasSubstr("the number of scores is 1; expected 0 or the 4 heads")));
  EXPECT_THAT([&] { make({.embed_dim = 12, .num_heads = 4, .dropout = 1}); },
              ThrowsMessage<Error>(HasSubstr("dropout is 1")));
  MultiHeadAttention attention(MultiHeadOptions{.embed_dim = 8, .num_heads = 2, .key_size = 4});
  const Tensor x = torch::randn({1, 3, 8});
  EXPECT_THAT([&] { attention(x, x, x); },
              ThrowsMessage<Error>(HasSubstr("keys has shape [1, 3, 8]; expected [batch, positions, 4]")));
  EXPECT_THAT([&] { attention->CopyFrom(torch::nn::MultiheadAttention(8, 2)); },
              ThrowsMessage<Error>(HasSubstr("q_proj_weight of the module to convert is missing")));
}

}  // namespace
}  // namespace regard::nn
