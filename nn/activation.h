// Activations of tensors.
#ifndef REGARD_NN_ACTIVATION_H_
#define REGARD_NN_ACTIVATION_H_

#include <torch/types.h>

#include "nn/activation_kernels.h"

namespace regard::nn {

// f(x), of any shape, differentiable. Tensors of float32 on the CPU are computed by our own kernels, which
// know AVX-512; all others by torch.
torch::Tensor Activate(Activation activation, const torch::Tensor& x);

}  // namespace regard::nn

#endif  // REGARD_NN_ACTIVATION_H_
