// Self-attention: every element of a sequence asks all others, and itself.
#ifndef REGARD_NN_SELF_ATTENTION_H_
#define REGARD_NN_SELF_ATTENTION_H_

#include <torch/torch.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "nn/attend.h"
#include "nn/modules.h"

namespace regard::nn {

// The mean of the values j < n, or of all, for each of `queries` queries: attention with equal weights.
// values [B, S, E], lengths as in MaskedSoftmax; context [B, queries, E], weights [B, queries, S]. Throws
// regard::Error where the shapes do not fit.
Context AveragePool(const torch::Tensor& values, std::int64_t queries = 1, const torch::Tensor& lengths = {},
                    bool return_weights = false);

// Self-attention without parameters, q = k = v = x:
//   s_ij = score(x_i, x_j),  p_i. = softmax_j,  c_i = sum_j p_ij x_j
// with kDot (Raschka 2024, "Build a large language model (from scratch)", section 3.3), kScaledDot or
// kCosine.
class SimpleSelfAttentionImpl : public torch::nn::Module {
 public:
  // Throws regard::Error for a score that has parameters.
  explicit SimpleSelfAttentionImpl(ScoreKind score = ScoreKind::kDot);

  // x [B, L, D] or [L, D], lengths as in MaskedSoftmax. Context of x's shape, weights [B, L, L] or [L, L].
  Context forward(const torch::Tensor& x, const torch::Tensor& lengths = {}, bool return_weights = false);

  void pretty_print(std::ostream& stream) const override;

 private:
  ScoreKind score_;
};
TORCH_MODULE(SimpleSelfAttention);

struct SelfAttentionOptions {
  std::int64_t input_size = 0, output_size = 0;  // d, c
  // false: W is a plain matrix [d, c], drawn from U(0, 1); true: a linear layer, weight [c, d] as torch draws
  // it.
  bool linear = true;
  bool bias = false;  // of the three linear layers
  bool causal = false;
  std::int64_t context_length = 0;   // the longest sequence; 0: any
  std::int64_t window = -1;          // keys on each side that a query sees; -1: all (local attention)
  std::int64_t projection_size = 0;  // a linear layer with bias from c to this at the end; 0: none
  double dropout = 0;                // of the weights, in training
};

// Trainable self-attention:
//   q = x W_q,  k = x W_k,  v = x W_v,  s_ij = q_i·k_j / sqrt(c),  c_i = sum_j dropout(softmax_j s_ij) v_j
// (Vaswani et al. 2017, section 3.2.1; Raschka 2024, sections 3.4 and 3.5). With a window it is local
// attention (Beltagy et al. 2020, "Longformer", section 3.1).
class SelfAttentionImpl : public torch::nn::Module {
 public:
  // Throws regard::Error naming an option that does not fit.
  explicit SelfAttentionImpl(const SelfAttentionOptions& options);

  // x [B, L, d] or [L, d], lengths as in MaskedSoftmax. Context [B, L, c] (or projection_size), weights [B,
  // L, L]; without B where x has none. Throws regard::Error where x is longer than context_length or of
  // another width.
  Context forward(const torch::Tensor& x, const torch::Tensor& lengths = {}, bool return_weights = false);

  void pretty_print(std::ostream& stream) const override;

  torch::Tensor W_q, W_k, W_v;  // plain matrices [d, c]; undefined where there are linear layers
  torch::nn::Linear q_layer{nullptr}, k_layer{nullptr}, v_layer{nullptr}, out_layer{nullptr};

 private:
  SelfAttentionOptions options_;
};
TORCH_MODULE(SelfAttention);

// Several heads with weights of their own, computed one after the other and laid side by side: what the
// combined multi-head form does in one call. Context [B, L, heads c], weights [B, heads, L, L].
class SideBySideHeadsImpl : public torch::nn::Module {
 public:
  // options.projection_size: after the heads are joined.
  SideBySideHeadsImpl(std::int64_t heads, const SelfAttentionOptions& options);

  // As SelfAttention; x with a batch.
  Context forward(const torch::Tensor& x, const torch::Tensor& lengths = {}, bool return_weights = false);

  std::vector<SelfAttention> heads;
  torch::nn::Linear out_layer{nullptr};
};
TORCH_MODULE(SideBySideHeads);

}  // namespace regard::nn

#endif  // REGARD_NN_SELF_ATTENTION_H_
