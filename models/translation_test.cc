// What every translation model has to do, for each of them.
#include "models/translation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace regard::models {
namespace {

using nlohmann::json;
using torch::Tensor;

struct Case {
  const char* name;
  json config;
};

// Sizes of the small tests; for each model its published form, and one with everything chosen that can be.
std::vector<Case> Cases() {
  const json sizes = {{"source_vocab", 20}, {"target_vocab", 14}, {"hidden_dim", 16},
                      {"num_layers", 2},    {"max_source", 9},    {"max_target", 12}};
  const auto with = [&](json config) {
    json all = sizes;
    all.update(config);
    return all;
  };
  return {{"Bahdanau", with({{"model", "bahdanau"}, {"embed_dim", 8}})},
          {"BahdanauLarge", with({{"model", "bahdanau"},
                                  {"embed_dim", 8},
                                  {"bidirectional", true},
                                  {"readout", "deep"},
                                  {"tied", true},
                                  {"dropout", 0.2},
                                  {"embedding_dropout", 0.1},
                                  {"readout_dropout", 0.1}})},
          {"Transformer", with({{"model", "transformer"}, {"num_heads", 4}, {"ffn_dim", 24}})},
          {"TransformerLarge", with({{"model", "transformer"},
                                     {"target_vocab", 20},
                                     {"num_heads", 2},
                                     {"norm", "pre"},
                                     {"activation", "gelu"},
                                     {"tied", true},
                                     {"shared", true},
                                     {"dropout", 0.2},
                                     {"attention_dropout", 0.1},
                                     {"embedding_dropout", 0.1}})}};
}

PairBatch Batch(std::int64_t n, std::int64_t s, std::int64_t t) {
  PairBatch batch;
  batch.source = torch::randint(4, 20, {n, s});
  batch.source_lengths = torch::randint(1, s + 1, {n});
  batch.target = torch::randint(4, 14, {n, t + 1});
  batch.target_lengths = torch::randint(1, t + 1, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    const auto a = batch.source_lengths[i].item<std::int64_t>(),
               b = batch.target_lengths[i].item<std::int64_t>();
    batch.source[i].slice(0, a - 1).fill_(kPad);
    batch.source[i][a - 1] = kEos;
    batch.target[i].slice(0, b).fill_(kPad);
    batch.target[i][0] = kBos;
    batch.target[i][b] = kEos;
  }
  return batch;
}

Tensor Wider(const Tensor& tokens, std::int64_t by) {
  return torch::cat({tokens, torch::full({tokens.size(0), by}, kPad, torch::kInt64)}, 1);
}

class TranslationModelOf : public testing::TestWithParam<Case> {
 protected:
  static std::shared_ptr<TranslationModel> Model(std::uint64_t seed) {
    torch::manual_seed(seed);
    return MakeTranslationModel(GetParam().config);
  }
};

TEST_P(TranslationModelOf, LossIsTheSumOverItsPairsWhateverThePadding) {
  const auto model = Model(1);
  model->eval();
  const PairBatch batch = Batch(9, 7, 6);
  const auto all = model->Loss(batch, 0.1, 0);
  EXPECT_EQ(all.tokens, batch.target_lengths.sum().item<std::int64_t>());
  double sum = 0, nats = 0;
  for (std::int64_t i = 0; i < 9; ++i) {
    PairBatch one{Wider(batch.source.slice(0, i, i + 1), 3), batch.source_lengths.slice(0, i, i + 1),
                  Wider(batch.target.slice(0, i, i + 1), 2), batch.target_lengths.slice(0, i, i + 1)};
    const auto loss = model->Loss(one, 0.1, 0);
    sum += loss.sum.item<double>();
    nats += loss.nats.item<double>();
  }
  EXPECT_NEAR(all.sum.item<double>(), sum, 1e-3);
  EXPECT_NEAR(all.nats.item<double>(), nats, 1e-3);
  EXPECT_FALSE(all.nats.requires_grad());
}

// Central differences in float64, for a weight of every parameter.
TEST_P(TranslationModelOf, GradientsAreThoseOfDifferences) {
  const auto model = Model(2);
  model->to(torch::kFloat64);
  const PairBatch batch = Batch(3, 5, 4);
  const auto loss = [&] { return model->Loss(batch, 0.1, 77).sum; };
  loss().backward();
  for (auto& p : model->named_parameters()) {
    ASSERT_TRUE(p.value().grad().defined()) << p.key();
    const std::int64_t at = p.value().grad().abs().argmax().item<std::int64_t>();
    torch::NoGradGuard guard;
    const double step = 1e-5;
    auto flat = p.value().view(-1);
    flat[at] += step;
    const double up = loss().item<double>();
    flat[at] -= 2 * step;
    const double down = loss().item<double>();
    flat[at] += step;
    const double got = p.value().grad().view(-1)[at].item<double>();
    EXPECT_NEAR((up - down) / (2 * step), got, 1e-6 * std::max(1.0, std::abs(got))) << p.key();
  }
}

// Text case 7, and 14: a beam over the vocabulary.
TEST_P(TranslationModelOf, TranslationDoesNotDependOnTheBatch) {
  const auto model = Model(3);
  const PairBatch batch = Batch(21, 9, 2);
  for (const std::int64_t beam : {1, 3, 40}) {
    DecodeOptions options;
    options.beam = beam;
    options.attention = true;
    const auto together = model->Translate(batch.source, batch.source_lengths, options);
    ASSERT_EQ(together.size(), 21U);
    const Tensor order = torch::randperm(21, torch::kInt64);
    const auto shuffled = model->Translate(Wider(batch.source.index_select(0, order), 4),
                                           batch.source_lengths.index_select(0, order), options);
    for (std::int64_t i = 0; i < 21; ++i) {
      const auto at = order[i].item<std::int64_t>();
      const std::int64_t length = batch.source_lengths[at].item<std::int64_t>();
      const auto alone = model->Translate(batch.source.slice(0, at, at + 1).slice(1, 0, length),
                                          batch.source_lengths.slice(0, at, at + 1), options)[0];
      for (const auto* other : {&shuffled[i], &alone}) {
        EXPECT_EQ(together[at].tokens, other->tokens);
        EXPECT_EQ(together[at].ended, other->ended);
        EXPECT_NEAR(together[at].log_prob, other->log_prob, 1e-4);
        EXPECT_TRUE(torch::allclose(together[at].attention.slice(1, 0, length),
                                    other->attention.slice(1, 0, length), 0, 1e-5));
        EXPECT_EQ(other->attention.slice(1, length).abs().sum().item<double>(), 0);
      }
      const auto steps = static_cast<std::int64_t>(alone.tokens.size()) + (alone.ended ? 1 : 0);
      EXPECT_EQ(alone.attention.sizes(), (std::vector<std::int64_t>{steps, length}));
      EXPECT_TRUE(torch::allclose(alone.attention.sum(1), torch::ones({steps}), 0, 1e-5));
    }
  }
}

// What a hypothesis claims is what the loss says of it.
TEST_P(TranslationModelOf, LogProbabilityIsTheLoss) {
  const auto model = Model(4);
  model->eval();
  const PairBatch batch = Batch(5, 6, 2);
  for (const std::int64_t beam : {1, 4}) {
    DecodeOptions options;
    options.beam = beam;
    const auto found = model->Translate(batch.source, batch.source_lengths, options);
    for (std::int64_t i = 0; i < 5; ++i) {
      std::vector<std::int64_t> target{kBos};
      target.insert(target.end(), found[i].tokens.begin(), found[i].tokens.end());
      if (found[i].ended) target.push_back(kEos);
      const auto length = static_cast<std::int64_t>(target.size()) - 1;
      const PairBatch one{batch.source.slice(0, i, i + 1), batch.source_lengths.slice(0, i, i + 1),
                          torch::tensor(target, torch::kInt64).unsqueeze(0),
                          torch::tensor({length}, torch::kInt64)};
      EXPECT_NEAR(found[i].log_prob, -model->Loss(one, 0, 0).nats.item<double>(), 1e-4);
    }
  }
}

TEST_P(TranslationModelOf, ItsConfigurationBuildsItAgain) {
  const auto model = Model(5);
  const auto again = MakeTranslationModel(model->config());
  EXPECT_EQ(again->config(), model->config());
  const auto a = model->named_parameters(), b = again->named_parameters();
  ASSERT_EQ(a.size(), b.size());
  for (const auto& p : a) EXPECT_EQ(p.value().sizes(), b[p.key()].sizes()) << p.key();
}

TEST_P(TranslationModelOf, DropoutIsOfTheSeedAndOfTrainingOnly) {
  const auto model = Model(6);
  const PairBatch batch = Batch(9, 7, 6);
  const auto sum = [&](std::uint64_t seed) { return model->Loss(batch, 0, seed).sum.item<double>(); };
  EXPECT_EQ(sum(1), sum(1));
  if (GetParam().config.contains("dropout")) {
    EXPECT_NE(sum(1), sum(2));
  }
  model->eval();
  EXPECT_EQ(sum(1), sum(2));
}

INSTANTIATE_TEST_SUITE_P(Models, TranslationModelOf, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

class TranslationModelThat : public testing::TestWithParam<Case> {};

TEST_P(TranslationModelThat, LearnsToCopy) {
  torch::manual_seed(7);
  json config = GetParam().config;
  config.update({{"source_vocab", 14}, {"embed_dim", 16}, {"hidden_dim", 32}});
  const auto model = MakeTranslationModel(config);
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(5e-3));
  const auto batch_of = [](std::int64_t n) {
    PairBatch batch = Batch(n, 2, 5);
    batch.source = batch.target.slice(1, 1).contiguous();
    batch.source_lengths = batch.target_lengths;
    return batch;
  };
  const int steps = 1200;
  for (int step = 0; step < steps; ++step) {
    // Falling to 0, so that the last steps settle
    const double rate = 5e-3 * (1 - static_cast<double>(step) / steps);
    static_cast<torch::optim::AdamOptions&>(adam.param_groups()[0].options()).lr(rate);
    const auto loss = model->Loss(batch_of(64), 0, step);
    adam.zero_grad();
    (loss.sum / static_cast<double>(loss.tokens)).backward();
    adam.step();
  }
  const PairBatch test = batch_of(100);
  const auto found = model->Translate(test.source, test.source_lengths, {});
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int64_t n = test.source_lengths[i].item<std::int64_t>() - 1;
    const auto row = test.source[i].contiguous();
    const auto* want = row.data_ptr<std::int64_t>();
    right += found[i].ended && found[i].tokens == std::vector<std::int64_t>(want, want + n);
  }
  EXPECT_GE(right, 95);
}

INSTANTIATE_TEST_SUITE_P(Models, TranslationModelThat, testing::Values(Cases()[0], Cases()[2]),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace regard::models
