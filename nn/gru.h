// A GRU over whole sequences of different lengths, as one autograd function.
#ifndef REGARD_NN_GRU_H_
#define REGARD_NN_GRU_H_

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "nn/gru_packing.h"

namespace regard::nn {

struct GruOptions {
  std::int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;      // between layers, 0 <= dropout < 1
  std::uint64_t seed = 0;  // of that dropout: the same seed gives the same mask
};

struct GruOutput {
  torch::Tensor output;  // [P, D H] packed: the top layer's states, D = 2 when bidirectional (forward first)
  torch::Tensor state;   // [layers D, N, H], after each sequence's last step; rows in packed order
};

// Equal to torch::nn::GRU on a PackedSequence, in its equations and its layout of weights:
//   x [P, I] packed, h0 [layers D, N, H] (rows in packed order), and for each layer and direction
//   w_ih [3H, I or D H], w_hh [3H, H], b_ih [3H], b_hh [3H], gates in the order r, z, n.
// A sequence of length 0 keeps its h0. float32 or float64 on the CPU; anything else throws regard::Error.
GruOutput GruSequence(const torch::Tensor& x, const torch::Tensor& h0,
                      const std::vector<torch::Tensor>& weights, const Packing& packing,
                      const GruOptions& options);

// The weights of a GRU, under torch.nn.GRU's names.
class GruImpl : public torch::nn::Module {
 public:
  GruImpl(std::int64_t input_size, std::int64_t hidden_size, std::int64_t layers, bool bidirectional,
          double dropout);

  // h0 undefined: zeros. seed: of the dropout, which acts in training mode only.
  GruOutput forward(const torch::Tensor& x, const Packing& packing, const torch::Tensor& h0,
                    std::uint64_t seed);

  const std::vector<torch::Tensor>& weights() const { return weights_; }

 private:
  std::int64_t hidden_;
  GruOptions options_;
  std::vector<torch::Tensor> weights_;
};
TORCH_MODULE(Gru);

}  // namespace regard::nn

#endif  // REGARD_NN_GRU_H_
