// Kernel regression: a prediction is a mean of the values, weighed by how near their keys are.
#ifndef REGARD_NN_KERNEL_REGRESSION_H_
#define REGARD_NN_KERNEL_REGRESSION_H_

#include <torch/torch.h>

#include <cstdint>
#include <ostream>
#include <vector>

#include "nn/attend.h"

namespace regard::nn {

enum class KernelWidth { kAverage, kFixed, kLearned };  // kAverage: every value counts the same

struct KernelRegressionOptions {
  // kGaussian or one of the compact kernels.
  ScoreKind kernel = ScoreKind::kGaussian;
  KernelWidth width = KernelWidth::kFixed;
  // h > 0: one number, or one a dimension. Where it is learned this is where it starts; empty: precision 1 /
  // h drawn from U(0, 1), as the textbook does (Zhang et al., "Dive into deep learning", section 10.2).
  std::vector<double> widths = {1.0};
};

struct Regression {
  torch::Tensor prediction;  // [n] or [n, E], as the values are
  torch::Tensor weights;     // [n, m] where asked for
};

// Nadaraya-Watson kernel regression (Nadaraya 1964; Watson 1964):
//   f(x) = sum_j K(|(x - x_j) / h|) y_j / sum_j K(|(x - x_j) / h|)
// computed as attention: 1 / h is the precision of the score. Its gradient is the engine's.
class KernelRegressionImpl : public torch::nn::Module {
 public:
  // Throws regard::Error naming an option that does not fit.
  explicit KernelRegressionImpl(const KernelRegressionOptions& options = {});

  // queries [n] or [n, D], keys [m] or [m, D], values [m] or [m, E]; integers become float32. Query i leaves
  // key i out where leave_self_out (n = m): to learn a width on the points themselves. A query that sees no
  // key (a compact kernel, far away) gives 0. Throws regard::Error where shapes do not fit.
  Regression forward(const torch::Tensor& queries, const torch::Tensor& keys, const torch::Tensor& values,
                     bool leave_self_out = false, bool return_weights = false);

  void pretty_print(std::ostream& stream) const override;

  torch::Tensor precision;  // 1 / h, [1] or [D]: a parameter where the width is learned, else a buffer

 private:
  KernelRegressionOptions options_;
};
TORCH_MODULE(KernelRegression);

}  // namespace regard::nn

#endif  // REGARD_NN_KERNEL_REGRESSION_H_
