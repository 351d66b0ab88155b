// The arithmetic of reading one more position: the product of a few rows with weights as torch stores them,
// each weight read once, and the norm of a row. A row gives the same bits beside any others and
// on any number of threads.
#ifndef REGARD_NN_ROW_KERNELS_H_
#define REGARD_NN_ROW_KERNELS_H_

#include <cstdint>

namespace regard::nn {

// y = x W^T + bias, or y += x W^T + bias.
struct RowProduct {
  std::int64_t rows = 0;
  std::int64_t inner = 0;         // K
  std::int64_t columns = 0;       // N
  const float* x = nullptr;       // [rows, K]
  const float* weight = nullptr;  // [N, K]
  const float* bias = nullptr;    // [N], or null: 0
  float* y = nullptr;             // [rows, N]
  bool add = false;               // to what y holds
};

// Columns begin .. end - 1 of it.
void Product(const RowProduct& product, std::int64_t begin, std::int64_t end);

// y = (x - mean) / sqrt(variance + eps) * weight + bias of one row of `width`; bias null: 0.
struct RowNorm {
  std::int64_t width = 0;
  double eps = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;
};
void Normalize(const RowNorm& norm, const float* x, float* y);

}  // namespace regard::nn

#endif  // REGARD_NN_ROW_KERNELS_H_
