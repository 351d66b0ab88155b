// The published values in the shared folder `oracles`, at the digits that they are printed with.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nn/attend.h"
#include "nn/modules.h"

namespace regard::nn {
namespace {

using torch::Tensor;

constexpr double kEightDigits = 2e-7;  // values of up to 1 at 8 digits, computed in float32

// A list of lists of numbers, or of integers, as a tensor.
Tensor ToTensor(const nlohmann::json& json) {
  std::vector<double> values;
  std::vector<std::int64_t> sizes;
  for (const nlohmann::json* at = &json; at->is_array(); at = &(*at)[0]) {
    sizes.push_back(static_cast<std::int64_t>(at->size()));
  }
  const std::function<void(const nlohmann::json&)> flatten = [&](const nlohmann::json& at) {
    if (!at.is_array()) return values.push_back(at.get<double>());
    for (const nlohmann::json& part : at) flatten(part);
  };
  flatten(json);
  return torch::tensor(values, torch::kDouble).view(sizes).to(torch::kFloat);
}

void ExpectClose(const Tensor& actual, const Tensor& expected, double tolerance = kEightDigits) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_LE((actual - expected).abs().max().item<double>(), tolerance) << actual << "\n" << expected;
}

class Oracles : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = std::string(REGARD_SHARED_DIR) + "/oracles/attention.json";
    std::ifstream file(path);
    if (file) {
      json_ = nlohmann::json::parse(file);
      return;
    }
    const char* ci = std::getenv("CI");
    if (ci != nullptr && std::string(ci) == "true") FAIL() << "shared data is absent: " << path;
    GTEST_SKIP() << "skipped because the shared data is absent: " << path;
  }

  Tensor At(const std::string& group, const std::string& name) { return ToTensor(json_[group][name]); }
  Tensor X() { return At("ch03_simple", "x"); }

  // Scaled dot-product attention of x W_q, x W_k, x W_v.
  AttendResult SelfAttention(const std::string& group, bool transposed, bool causal) {
    const auto project = [&](const std::string& name) {
      const Tensor w = At(group, name);
      return torch::matmul(X(), transposed ? w.t() : w);
    };
    AttendOptions options;
    options.causal = causal;
    options.return_weights = true;
    return Attend(project("Wq"), project("Wk"), project("Wv"), options);
  }

  nlohmann::json json_;
};

TEST_F(Oracles, SelfAttentionWithoutParameters) {
  AttendOptions options;
  options.score = ScoreKind::kDot;
  options.return_weights = true;
  const AttendResult r = Attend(X(), X(), X(), options);
  ExpectClose(r.weights, At("ch03_simple", "weights"));
  ExpectClose(r.out, At("ch03_simple", "context"));
}

TEST_F(Oracles, SelfAttentionWithMatrices) {
  const AttendResult r = SelfAttention("ch03_v1_seed123", false, false);
  ExpectClose(r.weights, At("ch03_v1_seed123", "weights"));
  ExpectClose(r.out, At("ch03_v1_seed123", "out"));
}

TEST_F(Oracles, SelfAttentionWithLinearLayers) {
  const AttendResult r = SelfAttention("ch03_v2_seed789", true, false);
  ExpectClose(r.weights, At("ch03_v2_seed789", "weights"));
  ExpectClose(r.out, At("ch03_v2_seed789", "out"));
  ExpectClose(SelfAttention("ch03_v2_seed789", true, true).weights, At("ch03_v2_seed789", "causal_weights"));
}

TEST_F(Oracles, CausalHead) {
  const AttendResult r = SelfAttention("ch03_causal_seed123", true, true);
  ExpectClose(r.weights, At("ch03_causal_seed123", "weights"));
  ExpectClose(r.out, At("ch03_causal_seed123", "out"));
}

TEST_F(Oracles, TwoHeadsWithOutputProjection) {
  const std::string group = "ch03_mha2_seed123";
  const auto heads = [&](const std::string& name) {  // [1, 2, 6, 1]
    return torch::matmul(X(), At(group, name).t()).view({1, 6, 2, 1}).transpose(1, 2);
  };
  AttendOptions options;
  options.causal = true;
  const Tensor context =
      Attend(heads("Wq"), heads("Wk"), heads("Wv"), options).out.transpose(1, 2).reshape({6, 2});
  ExpectClose(torch::matmul(context, At(group, "Wo").t()) + At(group, "bo"), At(group, "out"));
}

TEST_F(Oracles, AdditiveScoresWithLengths) {
  const std::string group = "joey_bahdanau_seed42";
  AdditiveAttention attention(5, 3, 7);
  {
    torch::NoGradGuard no_grad;
    // Published as stored by linear layers of either orientation.
    const auto set = [&](torch::nn::Linear& layer, const std::string& name) {
      const Tensor w = At(group, name);
      layer->weight.copy_(w.sizes() == layer->weight.sizes() ? w : w.t());
    };
    set(attention->W_q, "Wq");
    set(attention->W_k, "Wk");
    set(attention->w_v, "wv");
  }
  const Tensor keys = At(group, "keys_and_values");
  const Tensor lengths = At(group, "valid_lens").to(torch::kLong);
  const Context r = attention->forward(At(group, "queries"), keys, keys, lengths, true);
  ExpectClose(r.weights, At(group, "weights"));
  ExpectClose(r.context, At(group, "context"));
}

TEST_F(Oracles, DotScoresWithLengths) {
  const std::string group = "joey_luong_seed42";
  const Tensor values = At(group, "keys_and_values"), w = At(group, "Wk");
  const Tensor keys = torch::matmul(values, w.size(0) == values.size(2) ? w : w.t());
  AttendOptions options;
  options.score = ScoreKind::kDot;
  options.lengths = At(group, "valid_lens").to(torch::kLong);
  options.return_weights = true;
  const AttendResult r = Attend(At(group, "queries"), keys, values, options);
  ExpectClose(r.weights, At(group, "weights"));
  ExpectClose(r.out, At(group, "context"));
}

// The table of small right values.
TEST(Published, EqualKeysAverageTheValuesWithinTheLength) {
  const Tensor keys = torch::ones({2, 10, 2}), lengths = torch::tensor({2, 6});
  const Tensor values = torch::arange(40.0f).view({1, 10, 4}).repeat({2, 1, 1});
  const Tensor expected = torch::tensor({{2.f, 3.f, 4.f, 5.f}, {10.f, 11.f, 12.f, 13.f}}).unsqueeze(1);
  torch::manual_seed(1);
  AdditiveAttention additive(20, 2, 8, 0.1);
  additive->eval();
  DotProductAttention dot(0.5);
  dot->eval();
  ExpectClose(additive->forward(torch::randn({2, 1, 20}), keys, values, lengths).context, expected, 2e-6);
  ExpectClose(dot->forward(torch::randn({2, 1, 2}), keys, values, lengths).context, expected, 2e-6);
}

TEST(Published, MaskedSoftmaxOfLengthsPerQuery) {
  torch::manual_seed(1);
  const Tensor p = MaskedSoftmax(torch::randn({2, 2, 4}), torch::tensor({{1, 3}, {2, 4}}));
  EXPECT_TRUE(torch::allclose(p.sum(-1), torch::ones({2, 2})));
  EXPECT_TRUE(torch::equal(p[0][0], torch::tensor({1.f, 0.f, 0.f, 0.f})));
  EXPECT_EQ(p[0][1][3].item<float>(), 0.f);
  EXPECT_TRUE(p[1][0].slice(0, 2).eq(0).all().item<bool>());
  EXPECT_TRUE(p[1][1].gt(0).all().item<bool>());
}

TEST(Published, WeightedAverageAsProduct) {
  // Equal scores over ten keys weigh each by 0.1.
  const Tensor values = torch::arange(20.0f).view({2, 10, 1});
  const Tensor out = Attend(torch::zeros({2, 1, 3}), torch::zeros({2, 10, 3}), values).out;
  ExpectClose(out.flatten(), torch::tensor({4.5f, 14.5f}), 2e-6);
}

}  // namespace
}  // namespace regard::nn
