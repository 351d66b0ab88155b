// A transformer's layer that reads one more position of a few sequences, as writing text does for each token.
#ifndef REGARD_NN_LAYER_STEP_H_
#define REGARD_NN_LAYER_STEP_H_

#include <torch/torch.h>

#include <cstdint>

#include "nn/transformer_layers.h"

namespace regard::nn {

// The most rows that LayerStep is meant for: it was measured to be the faster way for one to eight.
constexpr std::int64_t kMaxStepRows = 8;

// y [N, out] = x W^T + bias, or y += it, of contiguous float32 tensors: x [N, in], W [out, in], bias [out] or
// undefined.
void ProductOfFewRows(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                      torch::Tensor& y, bool add = false);

// y = norm(x) of contiguous float32 tensors [N, width].
void NormOfFewRows(const Norm& norm, const torch::Tensor& x, torch::Tensor& y);

// TransformerLayer::forward of one causal position, without gradient and dropout. What takes the time there,
// beside reading the weights, is the fixed cost of each operation on a tensor; here are few.
class LayerStep {
 public:
  // Whether the layer is of float32 on the CPU and attends to no memory.
  static bool Can(const TransformerLayer& layer);

  // Shares the layer and its weights, for which Can holds. Throws regard::Error where REGARD_TARGET names an
  // unknown instruction set.
  explicit LayerStep(const TransformerLayer& layer);

  // x [N, embed_dim], contiguous: row n of the position after those in the cache becomes what the layer
  // gives, and its key and value are added there. Throws regard::Error for another N than the cache holds.
  void operator()(torch::Tensor& x, KeyValueCache& cache);

 private:
  void Attend(std::int64_t rows, KeyValueCache& cache);
  // x += linear(part), and the norm after it where that is the place
  void Add(const torch::Tensor& part, const torch::nn::Linear& linear, const Norm& norm, torch::Tensor& x);

  TransformerLayer layer_;
  torch::Tensor normed_, qkv_, heads_, inner_;  // [N, ..]
};

}  // namespace regard::nn

#endif  // REGARD_NN_LAYER_STEP_H_
