// Translation with a recurrent encoder and decoder and additive attention (Bahdanau et al. 2015), in the form
// of Zhang et al., "Dive into deep learning", section 11.4, with what larger models gain from as options.
#ifndef REGARD_MODELS_BAHDANAU_H_
#define REGARD_MODELS_BAHDANAU_H_

#include <torch/torch.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/translation.h"
#include "nn/attention_decoder.h"
#include "nn/gru.h"

namespace regard::models {

// The entries of the configuration.
struct BahdanauConfig {
  std::int64_t source_vocab = 0, target_vocab = 0;
  std::int64_t embed_dim = 0, hidden_dim = 0, num_layers = 1;
  double dropout = 0;            // between the layers of both GRUs
  double attention_dropout = 0;  // on the attention weights; absent: as dropout
  double embedding_dropout = 0;  // on both embeddings
  double readout_dropout = 0;    // before the vocabulary
  bool bidirectional = false;    // encoder; its two final states start the decoder through tanh(W [f; b] + c)
  // "state": logits = W s + b. "deep": logits = W tanh(W_r [s; c; y] + b_r) + b, with the context and the
  // embedding of the token before, and an inner width of embed_dim (Bahdanau et al. 2015, appendix A.2.2)
  bool deep = false;
  bool tied = false;  // W is the target embedding; needs "deep"
  // Tokens, kEos included. Nothing in the model depends on the source's; the target's is the limit of
  // Translate.
  std::int64_t max_source = 0, max_target = 0;

  // Throws regard::Error naming a missing or a wrong entry.
  static BahdanauConfig Read(const nlohmann::json& config);
};

class Bahdanau : public TranslationModel {
 public:
  // Initialised as published: Xavier uniform for all matrices, torch's own for biases and embeddings.
  explicit Bahdanau(const nlohmann::json& config);

  nlohmann::json config() const override;
  LossSum Loss(const PairBatch& batch, double label_smoothing, std::uint64_t seed) override;
  std::vector<Hypothesis> Translate(const torch::Tensor& source, const torch::Tensor& lengths,
                                    const DecodeOptions& options) override;

 private:
  friend class BahdanauBeam;

  // What the decoder asks; row i is the sentence order[i].
  struct Encoded {
    torch::Tensor keys, values, lengths;  // [N, S, H], [N, S, C], [N]
    torch::Tensor state;                  // [layers, N, H]
  };
  Encoded Encode(const torch::Tensor& source, const torch::Tensor& lengths,
                 const std::vector<std::int64_t>& order, std::uint64_t seed);
  torch::Tensor Drop(const torch::Tensor& x, double probability, std::uint64_t seed) const;
  torch::Tensor Logits(const torch::Tensor& states, const torch::Tensor& contexts,
                       const torch::Tensor& embeddings, std::uint64_t seed);
  nn::DecoderWeights DecoderWeights() const;
  std::int64_t ContextSize() const { return config_.hidden_dim * (config_.bidirectional ? 2 : 1); }

  BahdanauConfig config_;
  torch::nn::Embedding source_embedding_{nullptr}, target_embedding_{nullptr};
  nn::Gru encoder_{nullptr}, decoder_{nullptr};
  torch::nn::Linear bridge_{nullptr}, query_{nullptr}, key_{nullptr}, score_{nullptr}, readout_{nullptr};
  torch::Tensor output_weight_, output_bias_;
};

}  // namespace regard::models

#endif  // REGARD_MODELS_BAHDANAU_H_
