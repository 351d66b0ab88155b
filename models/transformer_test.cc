#include "models/transformer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "models/transformer_inference.h"

namespace regard::models {
namespace {

using nlohmann::json;
using torch::Tensor;

json Config() {
  return {{"model", "transformer"}, {"source_vocab", 20}, {"target_vocab", 14}, {"hidden_dim", 16},
          {"num_heads", 4},         {"num_layers", 2},    {"max_source", 9},    {"max_target", 12}};
}

Tensor Tokens(std::vector<std::int64_t> tokens) { return torch::tensor(tokens, torch::kInt64).unsqueeze(0); }

TEST(Transformer, HeadsGiveTheirMean) {
  torch::manual_seed(1);
  const auto model = MakeTranslationModel(Config());
  const Tensor source = Tokens({5, 6, 7, 8, kEos}), lengths = torch::tensor({5}, torch::kInt64);
  DecodeOptions options;
  options.beam = 3;
  options.attention = true;
  const auto mean = model->Translate(source, lengths, options)[0].attention;
  options.heads = true;
  const auto heads = model->Translate(source, lengths, options)[0].attention;
  EXPECT_EQ(heads.sizes(), (std::vector<std::int64_t>{mean.size(0), 4, 5}));
  EXPECT_TRUE(torch::allclose(heads.mean(1), mean, 0, 1e-6));
  EXPECT_GT((heads.select(1, 0) - heads.select(1, 1)).abs().max().item<double>(), 1e-4);
}

// Bit for bit, so that near ties cannot fall one way alone and another in a batch.
TEST(Transformer, LogProbabilityHasTheSameBitsInAnyBatch) {
  torch::manual_seed(2);
  const auto model = MakeTranslationModel(Config());
  const Tensor source = torch::randint(4, 20, {30, 9});
  const Tensor lengths = torch::arange(30) % 8 + 2;
  const auto together = model->Translate(source, lengths, {});
  for (std::int64_t i = 0; i < 30; ++i) {
    const std::int64_t length = lengths[i].item<std::int64_t>();
    const auto alone =
        model->Translate(source.slice(0, i, i + 1).slice(1, 0, length), lengths.slice(0, i, i + 1), {})[0];
    EXPECT_EQ(together[i].log_prob, alone.log_prob) << i;
    EXPECT_EQ(together[i].tokens, alone.tokens) << i;
  }
}

// Decoder layers, as trained and as translation uses them: with a cache what one pass gives (text case 13).
TEST(Transformer, DecoderTokensFedInPiecesOrOneByOneGiveWhatOnePassGives) {
  torch::manual_seed(4);
  torch::NoGradGuard no_grad;
  for (const bool pre_norm : {true, false}) {
    nn::TransformerLayer layer(nn::TransformerLayerOptions{
        .embed_dim = 16, .num_heads = 4, .memory_size = 16, .pre_norm = pre_norm});
    layer->eval();
    InferenceLayer inference(layer);
    const Tensor x = torch::randn({3, 16, 16}), memory = torch::randn({3, 5, 16});
    const Tensor lengths = torch::tensor({5, 2, 0});
    const nn::KeyValues projected = layer->ProjectMemory(memory), again = inference.ProjectMemory(memory);
    nn::LayerCall call{.self = {.corner = Corner::kBottomRight, .causal = true},
                       .cross = {.lengths = lengths},
                       .memory = &projected};
    InferenceLayer::Call inference_call{.self = call.self, .memory = &again, .memory_lengths = lengths};
    const Tensor whole = layer(x, call).x;
    EXPECT_TRUE(torch::allclose(inference(x, inference_call), whole, 0, 1e-5));
    for (const std::vector<std::int64_t>& pieces :
         {std::vector<std::int64_t>{7, 9}, std::vector<std::int64_t>(16, 1)}) {
      nn::KeyValueCache cache, inference_cache;
      call.cache = &cache;
      inference_call.cache = &inference_cache;
      std::vector<Tensor> out, inference_out;
      std::int64_t begin = 0;
      for (const std::int64_t length : pieces) {
        out.push_back(layer(x.narrow(1, begin, length), call).x);
        inference_out.push_back(inference(x.narrow(1, begin, length), inference_call));
        begin += length;
      }
      EXPECT_TRUE(torch::allclose(torch::cat(out, 1), whole, 0, 1e-5));
      EXPECT_TRUE(torch::allclose(torch::cat(inference_out, 1), whole, 0, 1e-5));
    }
  }
}

// Shared and tied embeddings are one weight, which the loss reaches from all its uses.
TEST(Transformer, EmbeddingsAreSharedAndTied) {
  const auto names = [](bool shared, bool tied) {
    json config = Config();
    config.update({{"target_vocab", 20}, {"shared", shared}, {"tied", tied}});
    std::string all;
    for (const auto& p : MakeTranslationModel(config)->named_parameters()) {
      if (p.value().size(0) == 20 && p.value().dim() == 2) all += p.key() + " ";
    }
    return all;
  };
  EXPECT_EQ(names(false, false), "output_weight source_embedding.weight target_embedding.weight ");
  EXPECT_EQ(names(true, false), "output_weight source_embedding.weight ");
  EXPECT_EQ(names(false, true), "source_embedding.weight target_embedding.weight ");
  EXPECT_EQ(names(true, true), "source_embedding.weight ");
}

TEST(Transformer, TranslationsMayBeLongerThanAnyTarget) {
  torch::manual_seed(3);
  const auto model = MakeTranslationModel(Config());
  DecodeOptions options;
  options.max_length = 150;
  const auto found = model->Translate(Tokens({5, kEos}), torch::tensor({2}, torch::kInt64), options)[0];
  EXPECT_LE(found.tokens.size(), 150U);
  EXPECT_TRUE(std::isfinite(found.log_prob));
}

TEST(Transformer, FreshEmbeddingsHaveTheDeviationAskedFor) {
  torch::manual_seed(5);
  json config = Config();
  config.update({{"source_vocab", 2000}, {"target_vocab", 1000}});
  for (const auto& [init, deviation] : {std::pair{"scaled", 0.25}, {"unit", 1.0}}) {
    config["embedding_init"] = init;
    const auto weights = MakeTranslationModel(config)->named_parameters();
    for (const char* name : {"source_embedding.weight", "target_embedding.weight"}) {
      EXPECT_NEAR(weights[name].std().item<double>(), deviation, deviation / 50) << name;
    }
  }
}

TEST(Transformer, WrongEntriesAreNamed) {
  const auto message = [](const json& entries) {
    json config = Config();
    config.update(entries);
    try {
      MakeTranslationModel(config);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message({{"num_heads", 3}}),
            "model configuration: \"hidden_dim\" is 16: expected a multiple of the 3 heads");
  EXPECT_EQ(message({{"shared", true}}),
            "model configuration: \"shared\" is true with 20 source and 14 target tokens: expected one "
            "vocabulary");
  EXPECT_EQ(message({{"norm", "both"}}),
            "model configuration: \"norm\" is \"both\": expected \"post\" or \"pre\"");
}

}  // namespace
}  // namespace regard::models
