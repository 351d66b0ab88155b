// Where in a sequence a vector stands, as something added to it.
#ifndef REGARD_NN_POSITIONS_H_
#define REGARD_NN_POSITIONS_H_

#include <torch/torch.h>

#include <cstdint>

namespace regard::nn {

// [length, width], for positions p = offset .. offset + length - 1:
//   column 2i: sin(p / 10000^(2i / width)),  column 2i + 1: cos of the same
// An odd width has one sine more than cosines (Vaswani et al. 2017, section 3.5).
torch::Tensor Sinusoid(std::int64_t length, std::int64_t width, std::int64_t offset = 0);

enum class PositionKind { kSinusoidal, kLearned };

// x [B, L, width] + the rows offset .. offset + L - 1 of a table [max_length, width]: the sinusoid, or a
// parameter `weight`, drawn from N(0, 0.02²).
class PositionsImpl : public torch::nn::Module {
 public:
  PositionsImpl(PositionKind kind, std::int64_t max_length, std::int64_t width);

  // Throws regard::Error where offset + L is more than max_length.
  torch::Tensor forward(const torch::Tensor& x, std::int64_t offset = 0);

  torch::Tensor weight;  // a parameter where it is learned

 private:
  torch::Tensor table_;
};
TORCH_MODULE(Positions);

}  // namespace regard::nn

#endif  // REGARD_NN_POSITIONS_H_
