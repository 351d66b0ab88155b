#include "models/smoothed_nll.h"

namespace regard::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Function : public torch::autograd::Function<Function> {
 public:
  static variable_list forward(AutogradContext* ctx, const Tensor& logits, const Tensor& labels,
                               double smoothing) {
    const Tensor log_p = torch::log_softmax(logits, 1);
    ctx->save_for_backward({log_p, labels});
    ctx->saved_data["smoothing"] = smoothing;
    const Tensor nats = -log_p.gather(1, labels.unsqueeze(1)).sum();
    Tensor sum = nats.clone();
    if (smoothing > 0) {
      sum.mul_(1 - smoothing).sub_(log_p.sum(), smoothing / static_cast<double>(logits.size(1)));
    }
    ctx->mark_non_differentiable({nats});
    return {sum, nats};
  }

  // d sum / d logits = p - (1 - smoothing) onehot - smoothing / V
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const double smoothing = ctx->saved_data["smoothing"].toDouble();
    Tensor dlogits = saved[0].exp();
    if (smoothing > 0) dlogits.sub_(smoothing / static_cast<double>(dlogits.size(1)));
    const Tensor at = saved[1].unsqueeze(1);
    dlogits.scatter_add_(1, at, torch::full(at.sizes(), smoothing - 1, dlogits.options()));
    return {dlogits.mul_(grads[0]), Tensor(), Tensor()};
  }
};

}  // namespace

std::pair<Tensor, Tensor> SmoothedNll(const Tensor& logits, const Tensor& labels, double smoothing) {
  const auto result = Function::apply(logits, labels, smoothing);
  return {result[0], result[1]};
}

}  // namespace regard::models
