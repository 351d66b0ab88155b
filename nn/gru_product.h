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

}  // namespace regard::nn

#endif  // REGARD_NN_GRU_PRODUCT_H_
