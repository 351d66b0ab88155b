// The loss of predicted tokens.
#ifndef REGARD_MODELS_SMOOTHED_NLL_H_
#define REGARD_MODELS_SMOOTHED_NLL_H_

#include <torch/torch.h>

#include <utility>

namespace regard::models {

// For logits [P, V] and labels [P] int64: the sum over P of (1 - smoothing) -log p_label + smoothing mean_v
// -log p_v (Szegedy et al. 2016, section 7), with gradient, and the sum of -log p_label, without. One pass
// over the logits forward and one backward.
std::pair<torch::Tensor, torch::Tensor> SmoothedNll(const torch::Tensor& logits, const torch::Tensor& labels,
                                                    double smoothing);

}  // namespace regard::models

#endif  // REGARD_MODELS_SMOOTHED_NLL_H_
