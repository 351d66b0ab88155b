#include "nn/kernel_regression.h"

#include <cmath>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

using torch::Tensor;

// x as floating rows [count, width].
Tensor Rows(const Tensor& x, const char* name) {
  if (x.dim() < 1 || x.dim() > 2) {
    throw Error(c10::str(name, " has shape ", x.sizes(), "; expected [points] or [points, dimensions]"));
  }
  const Tensor rows = x.dim() == 1 ? x.unsqueeze(1) : x;
  return rows.is_floating_point() ? rows : rows.to(torch::kFloat);
}

}  // namespace

KernelRegressionImpl::KernelRegressionImpl(const KernelRegressionOptions& options) : options_(options) {
  const bool learned = options.width == KernelWidth::kLearned;
  if (options.kernel < ScoreKind::kGaussian) {
    throw Error("kernel regression: expected the Gaussian or a compact kernel");
  }
  if (options.widths.empty() && !learned) throw Error("kernel regression: a width is missing");
  std::vector<double> precisions;
  for (const double h : options.widths) {
    if (!(h > 0) || !std::isfinite(h)) throw Error(c10::str("a kernel's width is ", h, "; expected above 0"));
    precisions.push_back(1 / h);
  }
  const Tensor start =
      precisions.empty() ? torch::rand({1}) : torch::tensor(precisions, torch::kDouble).to(torch::kFloat);
  precision = learned ? register_parameter("precision", start) : register_buffer("precision", start);
}

Regression KernelRegressionImpl::forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                         bool leave_self_out, bool return_weights) {
  const Tensor k = Rows(keys, "keys"), v = Rows(values, "values");
  const Tensor q = Rows(queries, "queries");
  if (q.size(1) != k.size(1) || v.size(0) != k.size(0)) {
    throw Error(c10::str("queries ", queries.sizes(), ", keys ", keys.sizes(), " and values ", values.sizes(),
                         ": expected points of the same width, and a value for each key"));
  }
  if (precision.size(0) != 1 && precision.size(0) != k.size(1)) {
    throw Error(
        c10::str(precision.size(0), " widths for ", k.size(1), " dimensions; expected one, or as many"));
  }
  if (leave_self_out && q.size(0) != k.size(0)) {
    throw Error(c10::str(q.size(0), " queries and ", k.size(0),
                         " keys: to leave a point itself out, they have to be the same points"));
  }
  const auto type = at::promote_types(at::promote_types(q.scalar_type(), k.scalar_type()), v.scalar_type());
  AttendOptions options;
  if (options_.width == KernelWidth::kAverage) {
    options.score = ScoreKind::kDot;
  } else {
    options.score = options_.kernel;
    options.precision = precision.to(type);
  }
  options.exclude_self = leave_self_out;
  options.return_weights = return_weights;
  const bool average = options_.width == KernelWidth::kAverage;
  const auto point = [&](const Tensor& x) {
    return average ? torch::zeros_like(x, x.options().dtype(type)) : x.to(type);
  };
  const AttendResult result = Attend(point(q), point(k), v.to(type), options);
  return {values.dim() == 1 ? result.out.squeeze(1) : result.out, result.weights};
}

void KernelRegressionImpl::pretty_print(std::ostream& stream) const {
  stream << "regard::nn::KernelRegression(" << (options_.width == KernelWidth::kAverage ? "average" : "")
         << (options_.width == KernelWidth::kFixed ? "fixed width" : "")
         << (options_.width == KernelWidth::kLearned ? "learned width" : "") << ")";
}

}  // namespace regard::nn
