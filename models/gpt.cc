#include "models/gpt.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "models/config.h"
#include "models/evaluation_mode.h"
#include "models/smoothed_nll.h"
#include "nn/dropout.h"
#include "nn/gru_kernels.h"
#include "nn/layer_step.h"

namespace regard::models {
namespace {

using torch::Tensor;

constexpr double kDeviation = 0.02;

void ExpectTokens(const Tensor& tokens, std::int64_t most) {
  if (tokens.dim() == 2 && tokens.size(1) >= 1 && tokens.size(1) <= most) return;
  throw Error(c10::str("tokens have shape ", tokens.sizes(), "; expected [texts, 1..", most, "]"));
}

}  // namespace

GptConfig GptConfig::Read(const nlohmann::json& config) {
  const ConfigReader read(config);
  read.Choice("model", {"gpt"});
  GptConfig c;
  c.vocab = read.Integer("vocab", 1);
  c.context = read.Integer("context", 1);
  c.embed_dim = read.Integer("embed_dim", 1);
  c.num_heads = read.Integer("num_heads", 1);
  c.num_layers = read.Integer("num_layers", 1);
  c.ffn_dim = read.Integer("ffn_dim", 1, 4 * c.embed_dim);
  c.dropout = read.Probability("dropout", 0.0);
  c.bias = read.Boolean("bias", true);
  c.tied = read.Boolean("tied", true);
  c.activation = read.Choice("activation", {"gelu", "gelu_tanh", "relu"}, "gelu");
  return c;
}

Gpt::Gpt(const nlohmann::json& config) : config_(GptConfig::Read(config)) {
  const GptConfig& c = config_;
  const auto drawn = [&](const char* name, std::int64_t rows) {
    return register_parameter(name, torch::empty({rows, c.embed_dim}).normal_(0, kDeviation));
  };
  token_embedding_ = drawn("token_embedding", c.vocab);
  position_embedding_ = drawn("position_embedding", c.context);
  const nn::TransformerLayerOptions options{.embed_dim = c.embed_dim,
                                            .num_heads = c.num_heads,
                                            .ffn_dim = c.ffn_dim,
                                            .dropout = c.dropout,
                                            .attention_dropout = c.dropout,
                                            .activation = c.activation == "gelu" ? nn::Activation::kGelu
                                                          : c.activation == "gelu_tanh"
                                                              ? nn::Activation::kGeluTanh
                                                              : nn::Activation::kRelu,
                                            .bias = c.bias};
  torch::nn::ModuleList list;
  torch::NoGradGuard no_grad;
  for (std::int64_t n = 0; n < c.num_layers; ++n) {
    nn::TransformerLayer layer(options);
    for (auto& item : layer->named_parameters()) {
      if (item.value().dim() < 2) continue;
      const bool back = item.key() == "self_attention.out_proj.weight" || item.key() == "ffn_out.weight";
      item.value().normal_(
          0, back ? kDeviation / std::sqrt(2.0 * static_cast<double>(c.num_layers)) : kDeviation);
    }
    for (auto* linear : {&layer->ffn_in, &layer->ffn_out}) {
      if (c.bias) (*linear)->bias.zero_();
    }
    layers_.push_back(layer);
    list->push_back(layer);
  }
  register_module("layers", list);
  final_norm_ = register_module("final_norm", nn::Norm(c.embed_dim, c.bias));
  head_ = c.tied ? token_embedding_ : drawn("head", c.vocab);
}

nlohmann::json Gpt::config() const {
  const GptConfig& c = config_;
  return {{"model", "gpt"},           {"vocab", c.vocab},          {"context", c.context},
          {"embed_dim", c.embed_dim}, {"num_heads", c.num_heads},  {"num_layers", c.num_layers},
          {"ffn_dim", c.ffn_dim},     {"dropout", c.dropout},      {"bias", c.bias},
          {"tied", c.tied},           {"activation", c.activation}};
}

Tensor Gpt::Hidden(const Tensor& tokens, std::int64_t offset, std::uint64_t seed,
                   std::vector<nn::KeyValueCache>* caches, std::vector<Tensor>* weights) {
  Tensor x = torch::embedding(token_embedding_, tokens) +
             position_embedding_.narrow(0, offset, tokens.size(1)).unsqueeze(0);
  if (is_training()) x = nn::Dropout(x, config_.dropout, nn::DeriveSeed(seed, 0));
  nn::LayerCall call;
  call.self.causal = true;
  call.self.corner = Corner::kBottomRight;
  call.self.return_weights = weights != nullptr;
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    call.seed = nn::DeriveSeed(seed, n + 1);
    if (caches != nullptr) call.cache = &(*caches)[n];
    const nn::LayerResult result = layers_[n](x, call);
    x = result.x;
    if (weights != nullptr) weights->push_back(result.self_weights);
  }
  return x;
}

Tensor Gpt::Head(const Tensor& hidden) { return torch::linear(final_norm_(hidden), head_); }

Tensor Gpt::Logits(const Tensor& tokens) {
  ExpectTokens(tokens, config_.context);
  return Head(Hidden(tokens, 0, 0, nullptr));
}

LossSum Gpt::Loss(const TokenBatch& batch, std::uint64_t seed) {
  ExpectTokens(batch.inputs, config_.context);
  const Tensor logits = Head(Hidden(batch.inputs, 0, seed, nullptr).flatten(0, 1));
  const auto [sum, nats] = SmoothedNll(logits, batch.targets.flatten(), /*smoothing=*/0);
  return {sum, nats, batch.targets.numel()};
}

Tensor Gpt::Attention(const Tensor& tokens) {
  const Tensor text = tokens.unsqueeze(0);
  ExpectTokens(text, config_.context);
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(*this);
  std::vector<Tensor> weights;
  Hidden(text, 0, 0, nullptr, &weights);
  return torch::cat(weights);
}

class GptDecoder : public LanguageDecoder {
 public:
  explicit GptDecoder(Gpt& model) : model_(model), caches_(model.layers_.size()) {
    if (std::all_of(model.layers_.begin(), model.layers_.end(), nn::LayerStep::Can)) {
      for (const nn::TransformerLayer& layer : model.layers_) steps_.emplace_back(layer);
    }
  }

  Tensor Step(const Tensor& tokens) override {
    Tensor logits;
    {
      const c10::InferenceMode inference;  // its operations cost less than those of NoGradGuard
      logits = ReadOn(tokens);
    }
    return logits.clone();  // not a tensor of that mode
  }

  void Select(const Tensor& rows) override {
    if (window_.defined()) window_ = window_.index_select(0, rows);
    for (nn::KeyValueCache& cache : caches_) cache.Select(rows);
  }

 private:
  std::int64_t Read() const { return window_.defined() ? window_.size(1) : 0; }
  void Remember(const Tensor& tokens) {
    window_ = window_.defined() ? torch::cat({window_, tokens}, 1) : tokens.clone();
  }

  Tensor ReadOn(const Tensor& tokens) {
    ExpectTokens(tokens, std::numeric_limits<std::int64_t>::max());
    const std::int64_t context = model_.config_.context;
    if (!steps_.empty() && tokens.size(1) == 1 && tokens.size(0) <= nn::kMaxStepRows && Read() < context) {
      return ReadOne(tokens);
    }
    const EvaluationMode mode(model_);
    Tensor hidden;
    for (std::int64_t begin = 0; begin < tokens.size(1);) {
      const std::int64_t kept = Read() == context ? context / 2 : Read();
      const std::int64_t count = std::min(tokens.size(1) - begin, context - kept);
      Tensor next = tokens.narrow(1, begin, count);
      if (kept < Read()) {
        next = torch::cat({window_.narrow(1, Read() - kept, kept), next}, 1);
        window_ = Tensor();
        for (nn::KeyValueCache& cache : caches_) cache.Clear();
      }
      hidden = model_.Hidden(next, Read(), 0, &caches_);
      Remember(next);
      begin += count;
    }
    return model_.Head(hidden.select(1, hidden.size(1) - 1));
  }

  // One token of each of a few texts, within the context.
  Tensor ReadOne(const Tensor& tokens) {
    Tensor x = torch::embedding(model_.token_embedding_, tokens.select(1, 0));
    x.add_(model_.position_embedding_[Read()]);
    for (std::size_t n = 0; n < steps_.size(); ++n) steps_[n](x, caches_[n]);
    Remember(tokens);
    Tensor normed = torch::empty_like(x), logits = torch::empty({x.size(0), model_.config_.vocab});
    nn::NormOfFewRows(model_.final_norm_, x, normed);
    nn::ProductOfFewRows(normed, model_.head_, {}, logits);
    return logits;
  }

  Gpt& model_;
  std::vector<nn::LayerStep> steps_;       // of each layer, where they can be
  std::vector<nn::KeyValueCache> caches_;  // of each layer
  Tensor window_;                          // [N, tokens in the caches]
};

std::unique_ptr<LanguageDecoder> Gpt::Decode() { return std::make_unique<GptDecoder>(*this); }

}  // namespace regard::models
