#include "models/gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "models/gpt2_layout.h"

namespace regard::models {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

json Config() {
  return {{"model", "gpt"},  {"vocab", 11},    {"context", 16},
          {"embed_dim", 12}, {"num_heads", 3}, {"num_layers", 2}};
}

// Weights large enough that every part matters.
std::shared_ptr<Gpt> Random(const json& config, bool evaluate = true) {
  torch::manual_seed(1);
  auto model = std::make_shared<Gpt>(config);
  torch::NoGradGuard no_grad;
  for (auto& p : model->parameters()) p.add_(torch::randn_like(p), 0.3);
  model->train(!evaluate);
  return model;
}

void ExpectNear(const Tensor& a, const Tensor& b, double tolerance = 2e-5) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LT((a - b).abs().max().item<double>(), tolerance);
}

Tensor Tokens(std::int64_t n, std::int64_t t) {
  torch::manual_seed(7);
  return torch::randint(11, {n, t}, torch::kInt64);
}

// Logits after the last token, the tokens read in pieces of these lengths.
Tensor Fed(Gpt& model, const Tensor& tokens, const std::vector<std::int64_t>& pieces) {
  const auto decoder = model.Decode();
  Tensor logits;
  std::int64_t begin = 0;
  for (const std::int64_t length : pieces) {
    logits = decoder->Step(tokens.narrow(1, begin, length));
    begin += length;
  }
  EXPECT_EQ(begin, tokens.size(1));
  return logits;
}

// Text case 13.
TEST(Gpt, TokensFedInPiecesOrOneByOneGiveWhatOnePassGives) {
  const auto model = Random(Config());
  const Tensor tokens = Tokens(2, 16), whole = model->Logits(tokens).select(1, 15);
  ExpectNear(Fed(*model, tokens, {7, 9}), whole);
  ExpectNear(Fed(*model, tokens, std::vector<std::int64_t>(16, 1)), whole);
  ExpectNear(Fed(*model, tokens, {16}), whole);
}

// Text case 13.
TEST(Gpt, PastTheContextTheWindowSlidesByHalfHoweverTokensAreCut) {
  for (const std::int64_t context : {16, 5, 1}) {
    json config = Config();
    config["context"] = context;
    const auto model = Random(config);
    for (const std::int64_t length : {17, 24, 25, 60}) {
      const Tensor tokens = Tokens(2, length);
      // The window, token by token.
      std::int64_t window = 0;
      for (std::int64_t n = 0; n < length; ++n) window = window == context ? context / 2 + 1 : window + 1;
      const Tensor expected = model->Logits(tokens.narrow(1, length - window, window)).select(1, window - 1);
      ExpectNear(Fed(*model, tokens, std::vector<std::int64_t>(length, 1)), expected);
      ExpectNear(Fed(*model, tokens, {length}), expected);
      ExpectNear(Fed(*model, tokens, {3, length - 4, 1}), expected);
    }
  }
}

TEST(Gpt, RowsOfADecoderDoNotKnowOfEachOther) {
  const auto model = Random(Config());
  const Tensor tokens = Tokens(3, 30), rows = torch::tensor({2, 0, 2, 1});
  const auto decoder = model->Decode();
  decoder->Step(tokens.narrow(1, 0, 20));
  decoder->Select(rows);
  const Tensor logits = decoder->Step(tokens.index_select(0, rows).narrow(1, 20, 10));
  for (std::int64_t i = 0; i < 4; ++i) {
    ExpectNear(logits[i], Fed(*model, tokens.index_select(0, rows[i].unsqueeze(0)), {20, 10})[0]);
  }
}

TEST(Gpt, ATokenDoesNotSeeThoseAfterIt) {
  const auto model = Random(Config());
  const Tensor tokens = Tokens(1, 16);
  Tensor other = tokens.clone();
  other.narrow(1, 9, 7).copy_((tokens.narrow(1, 9, 7) + 1) % 11);
  ExpectNear(model->Logits(tokens).narrow(1, 0, 9), model->Logits(other).narrow(1, 0, 9));
}

TEST(Gpt, AttentionHasTheWeightsOfEachLayerAndHead) {
  json config = Config();
  config["dropout"] = 0.5;
  const auto model = Random(config, /*evaluate=*/false);
  const Tensor tokens = Tokens(1, 16)[0], weights = model->Attention(tokens);
  EXPECT_TRUE(model->is_training());
  ASSERT_EQ(weights.sizes(), (torch::IntArrayRef{2, 3, 16, 16}));
  ExpectNear(weights.sum(-1), torch::ones({2, 3, 16}));
  ExpectNear(weights.triu(1), torch::zeros_like(weights), 1e-30);
  // Those of the first layer from its definition.
  const auto p = model->named_parameters();
  const Tensor x = torch::layer_norm(p["token_embedding"].index_select(0, tokens) + p["position_embedding"],
                                     {12}, p["layers.0.self_norm.weight"], p["layers.0.self_norm.bias"]);
  const Tensor qkv = torch::linear(x, p["layers.0.self_attention.in_proj_weight"],
                                   p["layers.0.self_attention.in_proj_bias"]);
  const Tensor heads = qkv.view({16, 3, 3, 4}).permute({1, 2, 0, 3});
  const Tensor scores = heads[0].matmul(heads[1].transpose(1, 2)) / 2;
  const Tensor future = torch::ones({16, 16}).triu(1).to(torch::kBool);
  ExpectNear(weights[0], scores.masked_fill(future, -INFINITY).softmax(-1));
}

TEST(Gpt, ItsLossIsTheCrossEntropyOfItsLogits) {
  for (const bool tied : {true, false}) {
    json config = Config();
    config.update({{"tied", tied}, {"bias", tied}, {"activation", tied ? "gelu" : "relu"}});
    const auto model = Random(config, /*evaluate=*/false);
    const Tensor tokens = Tokens(3, 17);
    const TokenBatch batch{tokens.narrow(1, 0, 16), tokens.narrow(1, 1, 16)};
    const LossSum loss = model->Loss(batch, 3);
    const Tensor expected = torch::nn::functional::cross_entropy(
        model->Logits(batch.inputs).flatten(0, 1), batch.targets.flatten(),
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
    EXPECT_NEAR(loss.sum.item<double>(), expected.item<double>(), 1e-3);
    EXPECT_EQ(loss.tokens, 48);
    const auto parameters = model->parameters();
    const auto got = torch::autograd::grad({loss.sum}, parameters),
               wanted = torch::autograd::grad({expected}, parameters);
    for (std::size_t i = 0; i < got.size(); ++i) ExpectNear(got[i], wanted[i], 1e-3);
  }
}

TEST(Gpt, DropoutFollowsTheSeedWhileTraining) {
  json config = Config();
  config["dropout"] = 0.2;
  const auto model = Random(config, /*evaluate=*/false);
  const Tensor tokens = Tokens(2, 17);
  const TokenBatch batch{tokens.narrow(1, 0, 16), tokens.narrow(1, 1, 16)};
  const auto loss = [&](std::uint64_t seed) { return model->Loss(batch, seed).sum.item<double>(); };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
  ExpectNear(Fed(*model, tokens.narrow(1, 0, 16), {16}), Fed(*model, tokens.narrow(1, 0, 16), {8, 8}));
  EXPECT_TRUE(model->is_training());
  model->eval();
  EXPECT_EQ(loss(1), loss(2));
}

TEST(Gpt, StartsAsGpt2DoesWithADrawOfItsOwnForEachWeight) {
  torch::manual_seed(2);
  json config = Config();
  config.update({{"embed_dim", 120}, {"vocab", 100}, {"num_layers", 8}});
  Gpt model(config);
  for (const auto& item : model.named_parameters()) {
    const bool back = item.key().find("out") != std::string::npos;  // out_proj and ffn_out
    if (item.value().dim() == 2) {
      EXPECT_NEAR(item.value().std().item<double>(), back ? 0.02 / 4 : 0.02, 0.001) << item.key();
    } else {
      EXPECT_TRUE(item.value().eq(item.key().find("weight") != std::string::npos ? 1 : 0).all().item<bool>())
          << item.key();
    }
  }
}

TEST(Gpt, AWrongConfigurationIsNamed) {
  const auto with = [](const char* name, const json& value) {
    json config = Config();
    config[name] = value;
    return [config] { MakeLanguageModel(config); };
  };
  EXPECT_THAT(with("context", 0), ThrowsMessage<Error>(HasSubstr("\"context\" is 0")));
  EXPECT_THAT(with("activation", "tanh"), ThrowsMessage<Error>(HasSubstr("\"activation\" is \"tanh\"")));
  EXPECT_THAT(with("model", "bahdanau"), ThrowsMessage<Error>(HasSubstr("expected \"gpt\"")));
  EXPECT_THAT(with("num_heads", 5), ThrowsMessage<Error>(HasSubstr("embed_dim is 12")));
  const auto model = MakeLanguageModel(Config());
  EXPECT_EQ(MakeLanguageModel(model->config())->config(), model->config());
}

TEST(Gpt2Layout, GoesThereAndBack) {
  for (const bool tied : {true, false}) {
    json config = Config();
    config.update({{"tied", tied}, {"bias", tied}, {"activation", "gelu_tanh"}, {"ffn_dim", 20}});
    const auto model = Random(config);
    Weights weights = ToGpt2(*model);
    for (auto& [name, tensor] : weights) name = "transformer." + name;
    weights.emplace_back("transformer.h.0.attn.bias", torch::ones({1, 1, 16, 16}));
    auto back = std::make_shared<Gpt>(FromGpt2Config(ToGpt2Config(*model)));
    FromGpt2(weights, *back, "test");
    back->eval();
    const Tensor tokens = Tokens(2, 16);
    ExpectNear(model->Logits(tokens), back->Logits(tokens), 1e-6);
  }
}

TEST(Gpt2Layout, WhatDoesNotFitIsNamed) {
  const auto model = Random(Config());
  Weights weights = ToGpt2(*model);
  weights.emplace_back("h.7.ln_1.weight", torch::ones({12}));
  EXPECT_THAT([&] { FromGpt2(weights, *model, "a.safetensors"); },
              ThrowsMessage<Error>("a.safetensors: unexpected weight \"h.7.ln_1.weight\""));
  weights.pop_back();
  for (auto& [name, tensor] : weights) {
    if (name == "h.1.attn.c_attn.weight") tensor = tensor.t();
  }
  EXPECT_THAT([&] { FromGpt2(weights, *model, "a.safetensors"); },
              ThrowsMessage<Error>(HasSubstr("\"h.1.attn.c_attn.weight\" is [36, 12]; expected [12, 36]")));
  weights.erase(weights.begin());
  EXPECT_THAT([&] { FromGpt2(weights, *model, "a.safetensors"); },
              ThrowsMessage<Error>(HasSubstr("\"wte.weight\" is missing")));
  json config = ToGpt2Config(*model);
  config["layer_norm_epsilon"] = 1e-6;
  EXPECT_THAT([&] { FromGpt2Config(config); }, ThrowsMessage<Error>(HasSubstr("layer_norm_epsilon")));
}

}  // namespace
}  // namespace regard::models
