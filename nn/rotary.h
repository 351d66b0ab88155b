// Positions as rotations of queries and keys.
#ifndef REGARD_NN_ROTARY_H_
#define REGARD_NN_ROTARY_H_

#include <torch/torch.h>

#include <cstdint>
#include <ostream>

namespace regard::nn {

// Which two dimensions turn together.
enum class RotaryPairs {
  kNeighbours,  // 2i and 2i + 1, as published
  kHalves,      // i and i + width / 2, as many implementations store their weights
};

// Rotary positions (Su et al. 2021, "RoFormer", section 3.2): the pair n of a vector at position p is turned
// by the angle p base^(-2n / width). Queries and keys both turned, their product depends on the distance of
// their positions alone, and lengths stay as they are.
class RotaryImpl : public torch::nn::Module {
 public:
  // width: of the vectors, even. Throws regard::Error where it is odd or base is not above 0.
  explicit RotaryImpl(std::int64_t width, double base = 10000, RotaryPairs pairs = RotaryPairs::kNeighbours);

  // x [..., L, width] at positions offset .. offset + L - 1, of any floating type; angles are computed in
  // float64. Throws regard::Error where the width is another.
  torch::Tensor forward(const torch::Tensor& x, std::int64_t offset = 0);

  void pretty_print(std::ostream& stream) const override;

 private:
  std::int64_t width_;
  double base_;
  RotaryPairs pairs_;
};
TORCH_MODULE(Rotary);

}  // namespace regard::nn

#endif  // REGARD_NN_ROTARY_H_
