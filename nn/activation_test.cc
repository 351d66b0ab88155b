#include "nn/activation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace regard::nn {
namespace {

using torch::Tensor;

Tensor Reference(Activation activation, const Tensor& x) {
  if (activation == Activation::kRelu) return torch::relu(x);
  return torch::gelu(x, activation == Activation::kGelu ? "none" : "tanh");
}

TEST(Activate, IsTorchsWithItsFirstAndSecondGradients) {
  torch::manual_seed(4);
  for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh}) {
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const Tensor x = torch::randn({50, 7}, type).mul_(2).requires_grad_();
      const Tensor d = torch::randn({7, 50}, type);
      const auto run = [&](const Tensor& y, bool twice) {
        const Tensor dx = torch::autograd::grad({(y * d).sum()}, {x}, {}, true, twice)[0];
        return twice ? torch::autograd::grad({dx.pow(2).sum()}, {x}, {}, true, false, true)[0] : dx;
      };
      const Tensor ours = Activate(activation, x.t()), theirs = Reference(activation, x.t());
      EXPECT_TRUE(torch::allclose(ours, theirs, 1e-6, 1e-6));
      EXPECT_TRUE(torch::allclose(run(ours, false), run(theirs, false), 1e-5, 2e-6));
      const Tensor second = run(ours, true), expected = run(theirs, true);
      ASSERT_EQ(second.defined(), expected.defined());
      if (second.defined()) {
        EXPECT_TRUE(torch::allclose(second, expected, 1e-4, 1e-5));
      }
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::equal(Activate(activation, x.t()), ours));
    }
  }
}

TEST(Activate, TheBitsDoNotDependOnTheThreads) {
  const Tensor x = torch::randn({300, 1001});
  const int threads = torch::get_num_threads();
  torch::set_num_threads(1);
  const Tensor one = Activate(Activation::kGelu, x);
  torch::set_num_threads(3);
  EXPECT_TRUE(torch::equal(Activate(Activation::kGelu, x), one));
  torch::set_num_threads(threads);
}

}  // namespace
}  // namespace regard::nn
