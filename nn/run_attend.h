// What the modules share: one call of Attend with a module's dropout.
#ifndef REGARD_NN_RUN_ATTEND_H_
#define REGARD_NN_RUN_ATTEND_H_

#include <torch/types.h>

#include <cstdint>

#include "nn/attend.h"
#include "nn/modules.h"

namespace regard::nn::internal {

// The probability itself. Throws regard::Error where it is not 0 <= p < 1.
double CheckedDropout(double probability);

// A seed from torch's generator, so that torch::manual_seed rules it.
std::int64_t DrawSeed();

// Attend with dropout of the weights in training, its seed drawn.
Context RunAttend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                  AttendOptions options, double dropout, bool training);

}  // namespace regard::nn::internal

#endif  // REGARD_NN_RUN_ATTEND_H_
