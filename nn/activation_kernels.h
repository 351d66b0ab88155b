// Activations and their derivatives, number by number.
#ifndef REGARD_NN_ACTIVATION_KERNELS_H_
#define REGARD_NN_ACTIVATION_KERNELS_H_

#include <cstdint>

namespace regard::nn {

// relu: max(x, 0)
// gelu: x Phi(x), Phi the distribution function of the standard normal (Hendrycks and Gimpel 2016)
// gelu_tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³))), its approximation
enum class Activation { kRelu, kGelu, kGeluTanh };

// y_i = f(x_i) of n numbers; y may be x. Phi is right to 1.5e-7. A NaN stays one.
void Activate(Activation activation, std::int64_t n, const float* x, float* y);

// dx_i = f'(x_i) dy_i; dx may be dy. f'(0) of relu is 0.
void ActivateBackward(Activation activation, std::int64_t n, const float* x, const float* dy, float* dx);

}  // namespace regard::nn

#endif  // REGARD_NN_ACTIVATION_KERNELS_H_
