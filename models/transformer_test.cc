#include "models/transformer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/error.h"

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
