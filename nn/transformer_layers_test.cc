#include "nn/transformer_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

using torch::Tensor;

void ExpectNear(const Tensor& a, const Tensor& b, double tolerance = 1e-5) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LT((a - b).abs().max().item<double>(), tolerance);
}

void Randomise(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  for (auto& p : module.parameters()) p.uniform_(-0.4, 0.4);
}

void Copy(const torch::nn::Linear& from, torch::nn::Linear& to) {
  torch::NoGradGuard no_grad;
  to->weight.copy_(from->weight);
  to->bias.copy_(from->bias);
}

void Copy(const torch::nn::LayerNorm& from, Norm& to) {
  torch::NoGradGuard no_grad;
  to->weight.copy_(from->weight);
  to->bias.copy_(from->bias);
}

TransformerLayerOptions PostNorm() {
  return {.embed_dim = 12, .num_heads = 3, .ffn_dim = 20, .activation = Activation::kRelu, .pre_norm = false};
}

TEST(TransformerLayer, IsTorchsEncoderLayerWithItsWeights) {
  torch::manual_seed(1);
  torch::nn::TransformerEncoderLayer theirs(
      torch::nn::TransformerEncoderLayerOptions(12, 3).dim_feedforward(20).dropout(0));
  TransformerLayer ours(PostNorm());
  Randomise(*theirs);
  ours->self_attention->CopyFrom(theirs->self_attn);
  Copy(theirs->linear1, ours->ffn_in);
  Copy(theirs->linear2, ours->ffn_out);
  Copy(theirs->norm1, ours->self_norm);
  Copy(theirs->norm2, ours->ffn_norm);
  const Tensor x = torch::randn({2, 5, 12});
  ExpectNear(ours(x, LayerCall{}).x, theirs(x.transpose(0, 1)).transpose(0, 1));
}

TEST(TransformerLayer, IsTorchsDecoderLayerWithItsWeights) {
  torch::manual_seed(2);
  torch::nn::TransformerDecoderLayer theirs(
      torch::nn::TransformerDecoderLayerOptions(12, 3).dim_feedforward(20).dropout(0));
  TransformerLayerOptions options = PostNorm();
  options.memory_size = 12;
  TransformerLayer ours(options);
  Randomise(*theirs);
  ours->self_attention->CopyFrom(theirs->self_attn);
  ours->cross_attention->CopyFrom(theirs->multihead_attn);
  Copy(theirs->linear1, ours->ffn_in);
  Copy(theirs->linear2, ours->ffn_out);
  Copy(theirs->norm1, ours->self_norm);
  Copy(theirs->norm2, ours->cross_norm);
  Copy(theirs->norm3, ours->ffn_norm);
  const Tensor x = torch::randn({2, 5, 12}), memory = torch::randn({2, 7, 12});
  const Tensor mask = torch::nn::TransformerImpl::generate_square_subsequent_mask(5);
  const KeyValues projected = ours->ProjectMemory(memory);
  const LayerResult result =
      ours(x, LayerCall{.self = {.causal = true}, .cross = {.return_weights = true}, .memory = &projected});
  ExpectNear(result.x, theirs(x.transpose(0, 1), memory.transpose(0, 1), mask).transpose(0, 1));
  EXPECT_EQ(result.cross_weights.sizes(), at::IntArrayRef({2, 3, 5, 7}));
}

TEST(TransformerLayer, PreNormIsItsFormula) {
  torch::manual_seed(3);
  for (const bool bias : {true, false}) {
    TransformerLayer layer(TransformerLayerOptions{.embed_dim = 8, .num_heads = 2, .bias = bias});
    Randomise(*layer);
    const Tensor x = torch::randn({2, 6, 8});
    const AttendOptions causal{.causal = true};
    const Tensor y = x + layer->self_attention->SelfAttend(layer->self_norm(x), causal).context;
    const Tensor expected = y + layer->ffn_out(torch::gelu(layer->ffn_in(layer->ffn_norm(y))));
    ExpectNear(layer(x, LayerCall{.self = causal}).x, expected);
  }
}

TEST(TransformerLayer, DropoutFollowsTheSeed) {
  torch::manual_seed(4);
  TransformerLayer layer(
      TransformerLayerOptions{.embed_dim = 8, .num_heads = 2, .dropout = 0.3, .attention_dropout = 0.3});
  const Tensor x = torch::randn({2, 6, 8});
  const auto out = [&](std::uint64_t seed) { return layer(x, LayerCall{.seed = seed}).x; };
  EXPECT_TRUE(out(1).equal(out(1)));
  EXPECT_FALSE(out(1).equal(out(2)));
  EXPECT_TRUE(out(0).equal(out(0)));
  layer->eval();
  EXPECT_TRUE(out(1).equal(out(2)));
}

TEST(TransformerLayer, AMemoryThatIsMissingOrNotWantedIsAnError) {
  TransformerLayer with(TransformerLayerOptions{.embed_dim = 8, .num_heads = 2, .memory_size = 6});
  TransformerLayer without(TransformerLayerOptions{.embed_dim = 8, .num_heads = 2});
  EXPECT_THROW(with(torch::randn({1, 2, 8}), LayerCall{}), Error);
  EXPECT_THROW(without->ProjectMemory(torch::randn({1, 2, 6})), Error);
}

}  // namespace
}  // namespace regard::nn
