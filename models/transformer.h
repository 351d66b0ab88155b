// Translation and summarising with an encoder and a decoder made of attention (Vaswani et al. 2017,
// "Attention is all you need").
#ifndef REGARD_MODELS_TRANSFORMER_H_
#define REGARD_MODELS_TRANSFORMER_H_

#include <torch/torch.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/translation.h"
#include "nn/transformer_layers.h"

namespace regard::models {

// The entries of the configuration.
struct TransformerConfig {
  std::int64_t source_vocab = 0, target_vocab = 0;
  std::int64_t hidden_dim = 0;  // d: width of embeddings and layers, a multiple of num_heads
  std::int64_t ffn_dim = 0;     // inner width of the feed-forward networks; absent: 4 hidden_dim
  std::int64_t num_heads = 1, num_layers = 1;  // layers of the encoder, and as many of the decoder
  double dropout = 0;                          // of what each part of a layer adds
  double attention_dropout = 0;                // on the attention weights; absent: as dropout
  double embedding_dropout = 0;                // on the embeddings with their positions; absent: as dropout
  bool pre_norm = false;  // "norm": "post" (as published) or "pre", with one more norm at either end
  nn::Activation activation = nn::Activation::kRelu;  // "activation": "relu" or "gelu"
  // Fresh embeddings: "embedding_init": "scaled", N(0, 1 / d), or "unit", N(0, 1), which sqrt(d) then makes
  // outweigh the positions.
  bool unit_embeddings = false;
  bool tied = false;    // the output's weight is the target embedding
  bool shared = false;  // the target embedding is the source embedding; needs vocabularies of one size
  // Tokens, kEos included. Nothing in the model depends on the source's; the target's is the limit of
  // Translate.
  std::int64_t max_source = 0, max_target = 0;

  // Throws regard::Error naming a missing or a wrong entry.
  static TransformerConfig Read(const nlohmann::json& config);
};

// x_0 = sqrt(d) embedding + sinusoid; encoder: layers of self-attention; decoder: layers of causal
// self-attention and attention to what the encoder gives; logits = W x + b.
//
// Weights: source_embedding.weight [source_vocab, d], target_embedding.weight [target_vocab, d] (unless
// shared), encoder.I.* and decoder.I.* as nn::TransformerLayer names them, encoder_norm.* and decoder_norm.*
// (with "pre"), output_weight [target_vocab, d] (unless tied), output_bias [target_vocab].
class Transformer : public TranslationModel {
 public:
  // Embeddings as "embedding_init" says, all other matrices Xavier uniform, those of queries, keys and values
  // each on its own.
  explicit Transformer(const nlohmann::json& config);

  nlohmann::json config() const override;
  LossSum Loss(const PairBatch& batch, double label_smoothing, std::uint64_t seed) override;
  // The weights are those of the decoder's last layer.
  std::vector<Hypothesis> Translate(const torch::Tensor& source, const torch::Tensor& lengths,
                                    const DecodeOptions& options) override;

 private:
  friend class TransformerBeam;
  using Layers = std::vector<nn::TransformerLayer>;

  Layers MakeLayers(const std::string& name, bool decoder);
  // sqrt(d) embedding + sinusoid from position `first` on, of tokens [N, L]: [N, L, d].
  torch::Tensor Embed(const torch::nn::Embedding& embedding, const torch::Tensor& tokens,
                      std::int64_t first = 0);
  torch::Tensor Drop(const torch::Tensor& x, std::uint64_t seed) const;
  // What the encoder gives, [N, S, d]: with gradient, and without but with the same bits in any batch.
  torch::Tensor Encode(const torch::Tensor& source, const torch::Tensor& lengths, std::uint64_t seed);
  torch::Tensor EncodeForTranslation(const torch::Tensor& source, const torch::Tensor& lengths);
  const torch::nn::Embedding& TargetEmbedding() const {
    return config_.shared ? source_embedding_ : target_embedding_;
  }
  torch::Tensor OutputWeight() const { return config_.tied ? TargetEmbedding()->weight : output_weight_; }

  TransformerConfig config_;
  torch::nn::Embedding source_embedding_{nullptr}, target_embedding_{nullptr};
  Layers encoder_, decoder_;
  nn::Norm encoder_norm_{nullptr}, decoder_norm_{nullptr};
  torch::Tensor output_weight_, output_bias_;
  torch::Tensor positions_;  // the sinusoid as far as it was needed
};

}  // namespace regard::models

#endif  // REGARD_MODELS_TRANSFORMER_H_
