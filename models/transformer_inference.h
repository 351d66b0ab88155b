// A transformer's layer as translation uses it.
#ifndef REGARD_MODELS_TRANSFORMER_INFERENCE_H_
#define REGARD_MODELS_TRANSFORMER_INFERENCE_H_

#include <torch/torch.h>

#include <memory>

#include "nn/gru_product.h"
#include "nn/transformer_layers.h"

namespace regard::models {

// nn::TransformerLayer without gradient and dropout, whose rows have the same bits in any batch. Several
// sequences may ask one memory, so that the hypotheses of a beam share it.
class InferenceLayer {
 public:
  struct Call {
    nn::AttendOptions self;                  // of the self-attention
    nn::KeyValueCache* cache = nullptr;      // x goes on where it ends
    const nn::KeyValues* memory = nullptr;   // [M, H, S, D], ProjectMemory of it; M divides B
    torch::Tensor memory_lengths;            // [M]
    torch::Tensor* cross_weights = nullptr;  // receives [M, H, B / M * L, S]
  };

  // Takes the weights of `layer` as they are now; it has to outlive this.
  explicit InferenceLayer(const nn::TransformerLayer& layer);

  // x [B, L, d]; with a memory, sequences i B / M to (i + 1) B / M - 1 ask row i of it.
  torch::Tensor operator()(const torch::Tensor& x, const Call& call);
  nn::KeyValues ProjectMemory(const torch::Tensor& memory) const;  // [M, S, d]

 private:
  struct Attention {
    explicit Attention(const nn::MultiHeadAttention& module);
    std::int64_t heads;
    nn::PackedLinear in, query, key_value, out;
  };
  torch::Tensor Before(nn::Norm& norm, const torch::Tensor& x) const { return pre_norm() ? norm(x) : x; }
  torch::Tensor After(nn::Norm& norm, const torch::Tensor& x) const { return pre_norm() ? x : norm(x); }
  bool pre_norm() const { return layer_->options().pre_norm; }

  nn::TransformerLayer layer_;
  Attention self_;
  std::unique_ptr<Attention> cross_;
  nn::PackedLinear ffn_in_, ffn_out_;
};

}  // namespace regard::models

#endif  // REGARD_MODELS_TRANSFORMER_INFERENCE_H_
