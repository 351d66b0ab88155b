#include "nn/dropout.h"

#include "nn/gru_kernels.h"

namespace regard::nn {

torch::Tensor Dropout(const torch::Tensor& x, double probability, std::uint64_t seed) {
  if (probability == 0) return x;
  torch::Tensor scales = torch::empty(
      x.sizes(), torch::dtype(x.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32));
  if (scales.scalar_type() == torch::kFloat64) {
    DropoutScales(seed, probability, scales.numel(), scales.data_ptr<double>());
  } else {
    DropoutScales(seed, probability, scales.numel(), scales.data_ptr<float>());
  }
  return x * scales.to(x.options().requires_grad(false));
}

}  // namespace regard::nn
