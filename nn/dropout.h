// Dropout whose mask is a function of a seed.
#ifndef REGARD_NN_DROPOUT_H_
#define REGARD_NN_DROPOUT_H_

#include <torch/types.h>

#include <cstdint>

namespace regard::nn {

// x with each element 0 with the given probability, else times 1 / (1 - probability) (Srivastava et al.
// 2014); the same seed and size give the same mask. x itself where the probability is 0.
torch::Tensor Dropout(const torch::Tensor& x, double probability, std::uint64_t seed);

}  // namespace regard::nn

#endif  // REGARD_NN_DROPOUT_H_
