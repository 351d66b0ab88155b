#include "nn/activation.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

namespace regard::nn {
namespace {

using torch::Tensor;

constexpr std::int64_t kNumbersOfAThread = 32768;

Tensor ByTorch(Activation activation, const Tensor& x) {
  if (activation == Activation::kRelu) return torch::relu(x);
  return torch::gelu(x, activation == Activation::kGelu ? "none" : "tanh");
}

Tensor BackwardByTorch(Activation activation, const Tensor& dy, const Tensor& x) {
  if (activation == Activation::kRelu) return at::threshold_backward(dy, x, 0);
  return at::gelu_backward(dy, x, activation == Activation::kGelu ? "none" : "tanh");
}

Tensor Compute(Activation activation, const Tensor& x) {
  Tensor y = torch::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = y.data_ptr<float>();
  at::parallel_for(0, x.numel(), kNumbersOfAThread, [&](std::int64_t begin, std::int64_t end) {
    Activate(activation, end - begin, from + begin, to + begin);
  });
  return y;
}

class Function : public torch::autograd::Function<Function> {
 public:
  using Context = torch::autograd::AutogradContext;

  static Tensor forward(Context* ctx, const Tensor& x, std::int64_t activation) {
    ctx->save_for_backward({x});
    ctx->saved_data["activation"] = activation;
    return Compute(static_cast<Activation>(activation), x);
  }

  static torch::autograd::variable_list backward(Context* ctx, torch::autograd::variable_list d) {
    const Tensor x = ctx->get_saved_variables()[0], dy = d[0].contiguous();
    const auto activation = static_cast<Activation>(ctx->saved_data["activation"].toInt());
    if (torch::GradMode::is_enabled()) return {BackwardByTorch(activation, dy, x), Tensor()};
    Tensor dx = torch::empty_like(x);
    const float *in = x.const_data_ptr<float>(), *up = dy.const_data_ptr<float>();
    float* out = dx.data_ptr<float>();
    at::parallel_for(0, x.numel(), kNumbersOfAThread, [&](std::int64_t begin, std::int64_t end) {
      ActivateBackward(activation, end - begin, in + begin, up + begin, out + begin);
    });
    return {dx, Tensor()};
  }
};

}  // namespace

Tensor Activate(Activation activation, const Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != torch::kFloat) return ByTorch(activation, x);
  const Tensor whole = x.contiguous();
  if (!x.requires_grad() || !torch::GradMode::is_enabled()) return Compute(activation, whole);
  return Function::apply(whole, static_cast<std::int64_t>(activation));
}

}  // namespace regard::nn
