// A causal transformer over tokens (Radford et al. 2019, "Language models are unsupervised multitask
// learners"; Vaswani et al. 2017).
#ifndef REGARD_MODELS_GPT_H_
#define REGARD_MODELS_GPT_H_

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/language.h"
#include "nn/transformer_layers.h"

namespace regard::models {

// The entries of the configuration.
struct GptConfig {
  std::int64_t vocab = 0, context = 0;  // tokens
  std::int64_t embed_dim = 0, num_heads = 1, num_layers = 1;
  std::int64_t ffn_dim = 0;  // absent: 4 embed_dim
  double dropout = 0;        // of the embeddings, the attention weights and what each part adds
  bool bias = true;          // of all projections and norms; the head has none
  bool tied = true;          // the head is the token embedding
  std::string activation;    // "gelu" (the default), "gelu_tanh" or "relu"

  // Throws regard::Error naming a missing or a wrong entry.
  static GptConfig Read(const nlohmann::json& config);
};

//   x = token_embedding[t] + position_embedding[0 .. T - 1]
//   x = layer(x), for each of the layers: pre-norm, causal
//   logits = head · final_norm(x)
//
// Weights: token_embedding [vocab, embed_dim], position_embedding [context, embed_dim], layers.N. and those
// of nn::TransformerLayer, final_norm, and head [vocab, embed_dim] unless tied. They start as GPT-2's: N(0,
// 0.02²), the projections back to x N(0, 0.02² / (2 layers)), biases 0, norms 1.
class Gpt : public LanguageModel {
 public:
  explicit Gpt(const nlohmann::json& config);

  nlohmann::json config() const override;
  std::int64_t context() const override { return config_.context; }
  LossSum Loss(const TokenBatch& batch, std::uint64_t seed) override;
  torch::Tensor Attention(const torch::Tensor& tokens) override;

  // Its window slides: where the context is full and a token comes, the last context / 2 (rounded down) are
  // read again from position 0, and the text goes on from there. Token n is thus told from between context /
  // 2 and context - 1 tokens before it, whatever the calls.
  std::unique_ptr<LanguageDecoder> Decode() override;

  // Logits [N, T, vocab] of what follows each of the tokens [N, T], T <= context.
  torch::Tensor Logits(const torch::Tensor& tokens);

 private:
  friend class GptDecoder;

  // [N, T] -> [N, T, embed_dim] before the final norm; the tokens are at positions offset .. offset + T - 1.
  // `weights`, where given, receives those of each layer, [N, heads, T, T].
  torch::Tensor Hidden(const torch::Tensor& tokens, std::int64_t offset, std::uint64_t seed,
                       std::vector<nn::KeyValueCache>* caches, std::vector<torch::Tensor>* weights = nullptr);
  torch::Tensor Head(const torch::Tensor& hidden);

  GptConfig config_;
  torch::Tensor token_embedding_, position_embedding_, head_;
  std::vector<nn::TransformerLayer> layers_;
  nn::Norm final_norm_{nullptr};
};

}  // namespace regard::models

#endif  // REGARD_MODELS_GPT_H_
