#include "nn/layer_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

using torch::Tensor;

struct Case {
  TransformerLayerOptions options;
  std::int64_t rows;
};

void PrintTo(const Case& c, std::ostream* stream) {
  const TransformerLayerOptions& o = c.options;
  *stream << o.embed_dim << " wide, " << o.num_heads << " heads, " << o.num_key_heads << " of keys, "
          << (o.pre_norm ? "pre" : "post") << "-norm, bias " << o.bias << ", " << c.rows << " rows";
}

TransformerLayer Random(const TransformerLayerOptions& options) {
  torch::manual_seed(3);
  TransformerLayer layer(options);
  torch::NoGradGuard no_grad;
  for (auto& p : layer->parameters()) p.uniform_(-0.4, 0.4);
  layer->eval();
  return layer;
}

class LayerStepTest : public testing::TestWithParam<Case> {};

TEST_P(LayerStepTest, PositionByPositionGivesWhatTheLayerGivesForAll) {
  const torch::NoGradGuard no_grad;
  TransformerLayer layer = Random(GetParam().options);
  ASSERT_TRUE(LayerStep::Can(layer));
  const std::int64_t rows = GetParam().rows, length = 20;
  const Tensor x = torch::randn({rows, length, GetParam().options.embed_dim});
  LayerCall call;
  call.self.causal = true;
  const Tensor expected = layer(x, call).x;
  for (const std::int64_t read_before : {0, 7}) {
    KeyValueCache cache;
    if (read_before > 0) {
      call.cache = &cache;
      layer(x.narrow(1, 0, read_before), call);
    }
    LayerStep step(layer);
    for (std::int64_t n = read_before; n < length; ++n) {
      Tensor row = x.select(1, n).clone();
      step(row, cache);
      EXPECT_EQ(cache.length(), n + 1);
      EXPECT_LT((row - expected.select(1, n)).abs().max().item<double>(), 2e-5) << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, LayerStepTest,
    testing::Values(Case{{.embed_dim = 12, .num_heads = 3}, 1},
                    Case{{.embed_dim = 12, .num_heads = 3, .pre_norm = false, .bias = false}, 2},
                    Case{{.embed_dim = 64, .num_heads = 4, .num_key_heads = 2, .ffn_dim = 33}, 3},
                    Case{{.embed_dim = 40, .num_heads = 1, .activation = Activation::kRelu}, kMaxStepRows},
                    Case{{.embed_dim = 40, .num_heads = 2, .activation = Activation::kGeluTanh}, 5}));

TEST(LayerStep, AnotherNumberOfRowsThanTheCacheHasIsNamed) {
  const torch::NoGradGuard no_grad;
  const TransformerLayer layer = Random({.embed_dim = 12, .num_heads = 3});
  LayerStep step(layer);
  KeyValueCache cache;
  Tensor two = torch::randn({2, 12}), three = torch::randn({3, 12});
  step(two, cache);
  EXPECT_THAT([&] { step(three, cache); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("[3, 3, 1, 4] come after")));
}

TEST(LayerStep, LayersThatItCannotStep) {
  EXPECT_FALSE(LayerStep::Can(Random({.embed_dim = 12, .num_heads = 3, .memory_size = 12})));
  TransformerLayer layer = Random({.embed_dim = 12, .num_heads = 3});
  layer->to(torch::kFloat64);
  EXPECT_FALSE(LayerStep::Can(layer));
}

}  // namespace
}  // namespace regard::nn
