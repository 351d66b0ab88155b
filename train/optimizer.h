// Adam and AdamW with gradient clipping, one fused call a step for all parameters.
#ifndef REGARD_TRAIN_OPTIMIZER_H_
#define REGARD_TRAIN_OPTIMIZER_H_

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

namespace regard::train {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decay_matrices_only = false;  // parameters with one dimension or none are left out of the decay
  bool decoupled = true;  // AdamW (Loshchilov and Hutter, 2019); else the decay is added to the gradient
};

struct StepReport {
  double grad_norm = 0;  // 2-norm over all parameters of gradient / divisor, before clipping
  bool applied = false;  // false: the norm is NaN or infinite, and nothing was changed
};

// Adam (Kingma and Ba, 2015), equal to torch::optim::Adam and AdamW up to rounding.
class Adam {
 public:
  // Keeps the parameters that require a gradient, under their names.
  Adam(const torch::nn::Module& module, const AdamOptions& options);

  // One step with g = clip(gradient / divisor), where clip scales to norm max_norm if it is larger (max_norm
  // 0: no clipping). Parameters without a gradient are left alone. A gradient that is not finite changes
  // nothing. The gradients themselves are used up: call ZeroGrad before the next backward pass.
  StepReport Step(double rate, double divisor, double max_norm);
  void ZeroGrad();

  // The exact state: for each parameter NAME, "NAME.mean", "NAME.square" and "NAME.steps".
  NamedTensors State() const;
  // Throws regard::Error naming a tensor that is missing or has another shape.
  void Load(const NamedTensors& state);

 private:
  struct Group {
    std::vector<torch::Tensor> parameters, gradients, means, squares, steps;
  };
  void Update(Group& group, double rate, double weight_decay);

  AdamOptions options_;
  std::vector<std::string> names_;
  std::vector<torch::Tensor> parameters_, means_, squares_, steps_;
  torch::Tensor scale_;  // [1] float: what gradients are divided by
};

// 2-norm over all tensors together, summed in double for CPU tensors.
double GlobalNorm(const std::vector<torch::Tensor>& tensors);

}  // namespace regard::train

#endif  // REGARD_TRAIN_OPTIMIZER_H_
