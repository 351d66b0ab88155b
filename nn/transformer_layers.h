// The residual layer that transformers are stacked from.
#ifndef REGARD_NN_TRANSFORMER_LAYERS_H_
#define REGARD_NN_TRANSFORMER_LAYERS_H_

#include <torch/torch.h>

#include <cstdint>

#include "nn/activation_kernels.h"
#include "nn/multi_head.h"

namespace regard::nn {

// y = (x - mean) / sqrt(variance + eps) * weight + bias over the last dimension (Ba et al. 2016).
class NormImpl : public torch::nn::Module {
 public:
  explicit NormImpl(std::int64_t width, bool with_bias = true, double eps = 1e-5);
  torch::Tensor forward(const torch::Tensor& x);
  double eps() const { return eps_; }

  torch::Tensor weight, bias;  // [width], from 1 and 0; bias undefined where there is none

 private:
  double eps_;
};
TORCH_MODULE(Norm);

struct TransformerLayerOptions {
  std::int64_t embed_dim = 0, num_heads = 1;
  std::int64_t num_key_heads = 0;  // 0: num_heads
  std::int64_t ffn_dim = 0;        // 0: 4 embed_dim
  std::int64_t memory_size = 0;    // above 0: the layer also attends to a memory of this width
  double dropout = 0;              // of what each part adds to x
  double attention_dropout = 0;    // of the attention weights
  Activation activation = Activation::kGelu;
  bool pre_norm = true;
  bool bias = true;  // of projections and norms
};

// What a call says beside x. What is left undefined or null is not used.
struct LayerCall {
  AttendOptions self{};               // mask and so on of the self-attention
  KeyValueCache* cache = nullptr;     // of the self-attention: x goes on where it ends
  AttendOptions cross{};              // the same of the attention to the memory
  const KeyValues* memory = nullptr;  // ProjectMemory of it
  std::uint64_t seed = 0;             // of all dropout
};

struct LayerResult {
  torch::Tensor x;                            // [B, L, embed_dim]
  torch::Tensor self_weights, cross_weights;  // [B, H, L, S], where the options ask for them
};

// Self-attention, attention to a memory (if any) and a feed-forward network, each added to what came in:
//   pre-norm   x + part(norm(x))     (Xiong et al. 2020)
//   post-norm  norm(x + part(x))     (Vaswani et al. 2017)
//   ffn(x) = W_2 act(W_1 x + b_1) + b_2
// Weights: self_norm, self_attention, cross_norm, cross_attention, ffn_norm, ffn_in, ffn_out.
class TransformerLayerImpl : public torch::nn::Module {
 public:
  explicit TransformerLayerImpl(const TransformerLayerOptions& options);

  // x [B, L, embed_dim].
  LayerResult forward(const torch::Tensor& x, const LayerCall& call);

  // Keys and values of a memory [B, S, memory_size], for LayerCall.
  KeyValues ProjectMemory(const torch::Tensor& memory);

  const TransformerLayerOptions& options() const { return options_; }  // with the ffn_dim that 0 stands for

  Norm self_norm{nullptr}, cross_norm{nullptr}, ffn_norm{nullptr};
  MultiHeadAttention self_attention{nullptr}, cross_attention{nullptr};
  torch::nn::Linear ffn_in{nullptr}, ffn_out{nullptr};

 private:
  // residual + dropout(linear(x)), with the norm after it where that is the place
  torch::Tensor Add(const torch::Tensor& residual, const torch::Tensor& x, torch::nn::Linear& linear,
                    Norm& norm, std::uint64_t seed);

  TransformerLayerOptions options_;
};
TORCH_MODULE(TransformerLayer);

}  // namespace regard::nn

#endif  // REGARD_NN_TRANSFORMER_LAYERS_H_
