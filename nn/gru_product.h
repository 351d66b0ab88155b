// Products of tensors with packed weights (see gru_kernels.h), for the recurrences.
#ifndef REGARD_NN_GRU_PRODUCT_H_
#define REGARD_NN_GRU_PRODUCT_H_

#include <torch/torch.h>

#include <cstdint>

#include "nn/gru_kernels.h"
#include "nn/gru_packing.h"

namespace regard::nn {

// x -> x w^T + bias for a torch weight w [N, K]; bias [N] or undefined.
template <typename T>
PackedMatrix<T> PackTransposed(const torch::Tensor& w, const torch::Tensor& bias = {}) {
  return PackedMatrix<T>(w.data_ptr<T>(), w.size(1), w.size(0), w.stride(1), w.stride(0),
                         bias.defined() ? bias.data_ptr<T>() : nullptr);
}

// x -> x w for a torch weight w [K, N].
template <typename T>
PackedMatrix<T> PackStraight(const torch::Tensor& w) {
  return PackedMatrix<T>(w.data_ptr<T>(), w.size(0), w.size(1), w.stride(0), w.stride(1));
}

// x w for all rows of x [P, K], contiguous: [P, N].
template <typename T>
torch::Tensor ProductAll(const torch::Tensor& x, const PackedMatrix<T>& w) {
  const std::int64_t rows = x.size(0), k = w.inner(), n = w.columns();
  auto y = torch::empty({rows, n}, x.options());
  const T* in = x.data_ptr<T>();
  T* out = y.template data_ptr<T>();
  ForRowBlocks(rows, 4 * kRowBlock, rows * k * n, [&](std::int64_t begin, std::int64_t end) {
    Product(in + begin * k, k, end - begin, w, out + begin * n, n);
  });
  return y;
}

// x [P, K] -> x w^T + bias without gradient, for a torch weight w [N, K] (float32 or float64) and bias [N] or
// undefined. Unlike torch::linear's, a row's bits do not depend on the rows beside it.
class PackedLinear {
 public:
  explicit PackedLinear(const torch::Tensor& w, const torch::Tensor& bias = {}) {
    torch::NoGradGuard guard;
    const torch::Tensor b = bias.defined() ? bias.contiguous() : bias;
    if (w.scalar_type() == torch::kFloat64) {
      full_ = PackTransposed<double>(w, b);
    } else {
      single_ = PackTransposed<float>(w, b);
    }
  }
  torch::Tensor operator()(const torch::Tensor& x) const {
    torch::NoGradGuard guard;
    return x.scalar_type() == torch::kFloat64 ? ProductAll(x.contiguous(), full_)
                                              : ProductAll(x.contiguous(), single_);
  }

 private:
  PackedMatrix<float> single_;
  PackedMatrix<double> full_;
};

}  // namespace regard::nn

#endif  // REGARD_NN_GRU_PRODUCT_H_
