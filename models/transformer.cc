#include "models/transformer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/error.h"
#include "models/beam.h"
#include "models/config.h"
#include "models/smoothed_nll.h"
#include "models/transformer_inference.h"
#include "nn/dropout.h"
#include "nn/gru_kernels.h"
#include "nn/positions.h"

namespace regard::models {
namespace {

using torch::Tensor;

// What a step's seed is derived for; of the layers, with the layer's number added.
enum Use : std::uint64_t { kSourceEmbedding = 1, kTargetEmbedding, kEncoder = 1 << 16, kDecoder = 1 << 17 };

void ExpectBatch(const std::string& name, const Tensor& tokens, const Tensor& lengths) {
  if (tokens.dim() == 2 && lengths.dim() == 1 && lengths.size(0) == tokens.size(0)) return;
  throw Error(name + " is " + c10::str(tokens.sizes()) + " with lengths " + c10::str(lengths.sizes()) +
              ": expected [sentences, steps] and [sentences]");
}

// Where tokens [N, L] are no padding, in rows of [N L].
Tensor PlacesOf(const Tensor& lengths, std::int64_t steps) {
  return torch::arange(steps).unsqueeze(0).lt(lengths.unsqueeze(1)).flatten().nonzero().squeeze(1);
}

void XavierUniform(Tensor weight, std::int64_t parts) {
  for (Tensor part : weight.chunk(parts)) torch::nn::init::xavier_uniform_(part);
}

}  // namespace

TransformerConfig TransformerConfig::Read(const nlohmann::json& config) {
  const ConfigReader read(config);
  read.Choice("model", {"transformer"});
  TransformerConfig c;
  c.source_vocab = read.Integer("source_vocab", kUnk + 1);
  c.target_vocab = read.Integer("target_vocab", kUnk + 1);
  c.hidden_dim = read.Integer("hidden_dim", 1);
  c.ffn_dim = read.Integer("ffn_dim", 1, 4 * c.hidden_dim);
  c.num_heads = read.Integer("num_heads", 1);
  c.num_layers = read.Integer("num_layers", 1);
  c.dropout = read.Probability("dropout", 0.0);
  c.attention_dropout = read.Probability("attention_dropout", c.dropout);
  c.embedding_dropout = read.Probability("embedding_dropout", c.dropout);
  c.pre_norm = read.Choice("norm", {"post", "pre"}, "post") == "pre";
  c.activation = read.Choice("activation", {"relu", "gelu"}, "relu") == "relu" ? nn::Activation::kRelu
                                                                               : nn::Activation::kGelu;
  c.unit_embeddings = read.Choice("embedding_init", {"scaled", "unit"}, "scaled") == "unit";
  c.tied = read.Boolean("tied", false);
  c.shared = read.Boolean("shared", false);
  c.max_source = read.Integer("max_source", 1);
  c.max_target = read.Integer("max_target", 1);
  if (c.hidden_dim % c.num_heads != 0) {
    throw Error("model configuration: \"hidden_dim\" is " + std::to_string(c.hidden_dim) +
                ": expected a multiple of the " + std::to_string(c.num_heads) + " heads");
  }
  if (c.shared && c.source_vocab != c.target_vocab) {
    throw Error("model configuration: \"shared\" is true with " + std::to_string(c.source_vocab) +
                " source and " + std::to_string(c.target_vocab) + " target tokens: expected one vocabulary");
  }
  return c;
}

Transformer::Transformer(const nlohmann::json& config) : config_(TransformerConfig::Read(config)) {
  const auto& c = config_;
  const double deviation = c.unit_embeddings ? 1 : 1 / std::sqrt(static_cast<double>(c.hidden_dim));
  const auto embedding = [&](const std::string& name, std::int64_t size) {
    auto module = register_module(name, torch::nn::Embedding(size, c.hidden_dim));
    torch::nn::init::normal_(module->weight, 0, deviation);
    return module;
  };
  source_embedding_ = embedding("source_embedding", c.source_vocab);
  if (!c.shared) target_embedding_ = embedding("target_embedding", c.target_vocab);
  encoder_ = MakeLayers("encoder", false);
  decoder_ = MakeLayers("decoder", true);
  if (c.pre_norm) {
    encoder_norm_ = register_module("encoder_norm", nn::Norm(c.hidden_dim));
    decoder_norm_ = register_module("decoder_norm", nn::Norm(c.hidden_dim));
  }
  if (!c.tied) {
    output_weight_ = register_parameter("output_weight", torch::empty({c.target_vocab, c.hidden_dim}));
    torch::nn::init::xavier_uniform_(output_weight_);
  }
  output_bias_ = register_parameter("output_bias", torch::zeros({c.target_vocab}));
}

Transformer::Layers Transformer::MakeLayers(const std::string& name, bool decoder) {
  const auto& c = config_;
  auto list = register_module(name, torch::nn::ModuleList());
  Layers layers;
  for (std::int64_t i = 0; i < c.num_layers; ++i) {
    nn::TransformerLayer layer(nn::TransformerLayerOptions{.embed_dim = c.hidden_dim,
                                                           .num_heads = c.num_heads,
                                                           .ffn_dim = c.ffn_dim,
                                                           .memory_size = decoder ? c.hidden_dim : 0,
                                                           .dropout = c.dropout,
                                                           .attention_dropout = c.attention_dropout,
                                                           .activation = c.activation,
                                                           .pre_norm = c.pre_norm});
    for (auto& p : layer->named_parameters()) {
      if (p.value().dim() < 2) continue;
      torch::NoGradGuard guard;
      XavierUniform(p.value(), p.key().find("in_proj_weight") == std::string::npos ? 1 : 3);
    }
    list->push_back(layer);
    layers.push_back(layer);
  }
  return layers;
}

nlohmann::json Transformer::config() const {
  const auto& c = config_;
  return {{"model", "transformer"},
          {"source_vocab", c.source_vocab},
          {"target_vocab", c.target_vocab},
          {"hidden_dim", c.hidden_dim},
          {"ffn_dim", c.ffn_dim},
          {"num_heads", c.num_heads},
          {"num_layers", c.num_layers},
          {"dropout", c.dropout},
          {"attention_dropout", c.attention_dropout},
          {"embedding_dropout", c.embedding_dropout},
          {"norm", c.pre_norm ? "pre" : "post"},
          {"activation", c.activation == nn::Activation::kRelu ? "relu" : "gelu"},
          {"embedding_init", c.unit_embeddings ? "unit" : "scaled"},
          {"tied", c.tied},
          {"shared", c.shared},
          {"max_source", c.max_source},
          {"max_target", c.max_target}};
}

Tensor Transformer::Embed(const torch::nn::Embedding& embedding, const Tensor& tokens, std::int64_t first) {
  const Tensor& weight = embedding->weight;
  const std::int64_t d = config_.hidden_dim, end = first + tokens.size(1);
  if (!positions_.defined() || positions_.size(0) < end) {
    positions_ = nn::Sinusoid(std::max<std::int64_t>(2 * end, 64), d);
  }
  const Tensor places = positions_.narrow(0, first, tokens.size(1)).to(weight.device(), weight.scalar_type());
  return torch::embedding(weight, tokens) * std::sqrt(static_cast<double>(d)) + places;
}

Tensor Transformer::Drop(const Tensor& x, std::uint64_t seed) const {
  return is_training() ? nn::Dropout(x, config_.embedding_dropout, seed) : x;
}

Tensor Transformer::Encode(const Tensor& source, const Tensor& lengths, std::uint64_t seed) {
  Tensor x = Drop(Embed(source_embedding_, source), nn::DeriveSeed(seed, kSourceEmbedding));
  nn::LayerCall call;
  call.self.lengths = lengths;
  for (std::size_t i = 0; i < encoder_.size(); ++i) {
    call.seed = nn::DeriveSeed(seed, kEncoder + i);
    x = encoder_[i](x, call).x;
  }
  return config_.pre_norm ? encoder_norm_(x) : x;
}

LossSum Transformer::Loss(const PairBatch& batch, double label_smoothing, std::uint64_t seed) {
  ExpectBatch("source", batch.source, batch.source_lengths);
  ExpectBatch("target", batch.target, batch.target_lengths);
  const Tensor memory = Encode(batch.source, batch.source_lengths, seed);
  const std::int64_t steps = batch.target.size(1) - 1;
  Tensor x =
      Drop(Embed(TargetEmbedding(), batch.target.slice(1, 0, steps)), nn::DeriveSeed(seed, kTargetEmbedding));
  nn::LayerCall call;
  call.self.causal = true;  // hides padding too: it is behind
  call.cross.lengths = batch.source_lengths;
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    const nn::KeyValues projected = decoder_[i]->ProjectMemory(memory);
    call.memory = &projected;
    call.seed = nn::DeriveSeed(seed, kDecoder + i);
    x = decoder_[i](x, call).x;
  }
  const Tensor places = PlacesOf(batch.target_lengths, steps);
  x = x.flatten(0, 1).index_select(0, places);
  if (config_.pre_norm) x = decoder_norm_(x);
  const Tensor labels = batch.target.slice(1, 1).flatten().index_select(0, places);
  const auto [sum, nats] =
      SmoothedNll(torch::linear(x, OutputWeight(), output_bias_), labels, label_smoothing);
  return {sum, nats, places.size(0)};
}

Tensor Transformer::EncodeForTranslation(const Tensor& source, const Tensor& lengths) {
  Tensor x = Embed(source_embedding_, source);
  InferenceLayer::Call call;
  call.self.lengths = lengths;
  for (const auto& layer : encoder_) x = InferenceLayer(layer)(x, call);
  return config_.pre_norm ? encoder_norm_(x) : x;
}

// The decoder as a beam search sees it. The hypotheses of a sentence ask its keys and values together.
class TransformerBeam : public BeamModel {
 public:
  TransformerBeam(Transformer& model, const Tensor& memory, const Tensor& lengths,
                  const DecodeOptions& options)
      : model_(model),
        lengths_(lengths),
        options_(options),
        output_(model.OutputWeight(), model.output_bias_),
        caches_(model.decoder_.size()) {
    for (const auto& layer : model.decoder_) {
      layers_.emplace_back(layer);
      memory_.push_back(layers_.back().ProjectMemory(memory));
    }
  }

  Tensor Step(const Tensor& tokens) override {
    Tensor x = model_.Embed(model_.TargetEmbedding(), tokens.unsqueeze(1), step_++);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      InferenceLayer::Call call;
      call.cache = &caches_[i];
      call.memory = &memory_[i];
      call.memory_lengths = lengths_;
      if (options_.attention && i + 1 == layers_.size()) call.cross_weights = &weights_;
      x = layers_[i](x, call);
    }
    x = x.squeeze(1);
    if (model_.config_.pre_norm) x = model_.decoder_norm_(x);
    return torch::log_softmax(output_(x), 1);
  }

  // [N, H, beam, S] -> [N beam, H, S], or the mean of the heads [N beam, S]
  Tensor Attention() override {
    const Tensor heads = weights_.transpose(1, 2).flatten(0, 1);
    return options_.heads ? heads : heads.mean(1);
  }

  void Select(const Tensor& sentences, const Tensor& rows) override {
    if (sentences.size(0) < lengths_.size(0)) {
      lengths_ = lengths_.index_select(0, sentences);
      for (nn::KeyValues& memory : memory_) {
        memory = {memory.keys.index_select(0, sentences), memory.values.index_select(0, sentences)};
      }
    }
    const bool as_they_are =
        rows.size(0) == caches_[0].All().keys.size(0) && rows.equal(torch::arange(rows.size(0)));
    if (as_they_are) return;
    for (nn::KeyValueCache& cache : caches_) cache.Select(rows);
  }

 private:
  Transformer& model_;
  Tensor lengths_;
  const DecodeOptions& options_;
  nn::PackedLinear output_;
  std::vector<InferenceLayer> layers_;
  std::vector<nn::KeyValues> memory_;  // of each layer
  std::vector<nn::KeyValueCache> caches_;
  std::int64_t step_ = 0;
  Tensor weights_;  // of the last step
};

std::vector<Hypothesis> Transformer::Translate(const Tensor& source, const Tensor& lengths,
                                               const DecodeOptions& options) {
  ExpectBatch("source", source, lengths);
  if (options.beam < 1) throw Error("beam is " + std::to_string(options.beam) + ": expected 1 or more");
  if (source.size(0) == 0) return {};
  torch::NoGradGuard guard;
  TransformerBeam beam(*this, EncodeForTranslation(source, lengths), lengths, options);
  const std::int64_t limit = options.max_length > 0 ? options.max_length : config_.max_target;
  return BeamSearch(beam, source.size(0), limit, options);
}

}  // namespace regard::models
