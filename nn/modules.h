// Attention as modules, over [B, L, D] tensors without a head dimension.
#ifndef REGARD_NN_MODULES_H_
#define REGARD_NN_MODULES_H_

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "nn/attend.h"

namespace regard::nn {

// Softmax over the last dimension of scores [B, L, S], of the first n keys of each row: lengths is integer
// [B] (one n a batch) or [B, L] (one a query); undefined: all. Past n the weight is exactly 0; a row with n =
// 0 is 0. Numbers past n have no effect, be they NaN. Throws regard::Error where the shapes do not fit.
torch::Tensor MaskedSoftmax(const torch::Tensor& scores, const torch::Tensor& lengths);

// What both modules return: context [B, L, E], and weights [B, L, S] before dropout (undefined if not asked).
struct Context {
  torch::Tensor context;
  torch::Tensor weights;
};

// Additive attention with its projections, all without bias:
//   s_ij = w_v·tanh(W_q q_i + W_k k_j),  p_i. = softmax of the keys j < n,  c_i = sum_j dropout(p_ij) v_j
// (Bahdanau et al. 2015, "Neural machine translation by jointly learning to align and translate", A.1.2)
class AdditiveAttentionImpl : public torch::nn::Module {
 public:
  AdditiveAttentionImpl(std::int64_t query_size, std::int64_t key_size, std::int64_t hidden_size,
                        double dropout = 0.0);

  // queries [B, L, query_size], keys [B, S, key_size], values [B, S, E], lengths as in MaskedSoftmax.
  Context forward(const torch::Tensor& queries, const torch::Tensor& keys, const torch::Tensor& values,
                  const torch::Tensor& lengths = {}, bool return_weights = false);

  // W_k k [B, S, hidden_size], to be computed once where the same keys are asked many times.
  torch::Tensor ProjectKeys(const torch::Tensor& keys);

  // forward with keys that ProjectKeys has projected.
  Context Attend(const torch::Tensor& queries, const torch::Tensor& projected_keys,
                 const torch::Tensor& values, const torch::Tensor& lengths = {}, bool return_weights = false);

  void pretty_print(std::ostream& stream) const override;

  torch::nn::Linear W_q{nullptr}, W_k{nullptr};  // weights [hidden_size, query_size], [hidden_size, key_size]
  torch::nn::Linear w_v{nullptr};                // weight [1, hidden_size]

 private:
  double dropout_;
};
TORCH_MODULE(AdditiveAttention);

// Scaled dot-product attention, without parameters:
//   s_ij = q_i·k_j / sqrt(D),  p_i. = softmax of the keys j < n,  c_i = sum_j dropout(p_ij) v_j
// (Vaswani et al. 2017, "Attention is all you need", section 3.2.1)
class DotProductAttentionImpl : public torch::nn::Module {
 public:
  explicit DotProductAttentionImpl(double dropout = 0.0);

  // queries [B, L, D], keys [B, S, D], values [B, S, E], lengths as in MaskedSoftmax. Heads as a dimension
  // before L and S are fine too.
  Context forward(const torch::Tensor& queries, const torch::Tensor& keys, const torch::Tensor& values,
                  const torch::Tensor& lengths = {}, bool return_weights = false);

  void pretty_print(std::ostream& stream) const override;

 private:
  double dropout_;
};
TORCH_MODULE(DotProductAttention);

}  // namespace regard::nn

#endif  // REGARD_NN_MODULES_H_
