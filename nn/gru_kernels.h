// The arithmetic of a recurrent step: a product with packed weights, and the gates of a GRU forward and
// backward. Every row is computed on its own, in an order that does not depend on how many rows there are:
// a row gives the same bits in any batch. T is float or double.
#ifndef REGARD_NN_GRU_KERNELS_H_
#define REGARD_NN_GRU_KERNELS_H_

#include <hwy/aligned_allocator.h>

#include <cstdint>

namespace regard::nn {

// A matrix W [K, N] and a bias [N], laid out in panels of as many columns as two vectors have lanes.
template <typename T>
class PackedMatrix {
 public:
  PackedMatrix() = default;
  // Element (k, n) is at w[k * stride_k + n * stride_n]. No bias (null) is a bias of 0.
  PackedMatrix(const T* w, std::int64_t k, std::int64_t n, std::int64_t stride_k, std::int64_t stride_n,
               const T* bias = nullptr);

  std::int64_t inner() const { return inner_; }      // K
  std::int64_t columns() const { return columns_; }  // N
  // [panels][1 + K][panel width]: the bias, then the rows; columns past N are 0
  const T* panels() const { return panels_.get(); }

 private:
  std::int64_t inner_ = 0;
  std::int64_t columns_ = 0;
  hwy::AlignedFreeUniquePtr<T[]> panels_;
};

// What Product gives to the code of one instruction set.
template <typename T>
struct ProductArgs {
  const T* x;
  std::int64_t ldx, rows, inner, columns;
  const T* panels;
  T* y;
  std::int64_t ldy;
  bool accumulate;
};

// y = x W + bias, or y += x W; x [rows, K], y [rows, N], with rows ldx and ldy elements apart.
template <typename T>
void Product(const T* x, std::int64_t ldx, std::int64_t rows, const PackedMatrix<T>& w, T* y,
             std::int64_t ldy, bool accumulate = false);

// One step of a GRU over `rows` rows (Cho et al. 2014, with the reset gate after the product as cuDNN has
// it):
//   r = sigmoid(i_r + g_r), z = sigmoid(i_z + g_z), n = tanh(i_n + r g_n), h' = (1 - z) n + z h
template <typename T>
struct GruGates {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;         // H
  const T* input = nullptr;        // i [rows, 3H]: W_i x + b_i, in the order r, z, n
  const T* recurrent = nullptr;    // g [rows, 3H]: W_h h + b_h
  T* state = nullptr;              // [rows, H]: h, overwritten by h'
  T* output = nullptr;             // h' again, rows `output_stride` apart
  std::int64_t output_stride = 0;  // in elements
  T* saved = nullptr;              // [rows, 4H] or null: r, z, n, g_n
  T* previous = nullptr;           // [rows, H] or null: h
};
template <typename T>
void GruForward(const GruGates<T>& step);

// Its gradient.
template <typename T>
struct GruGatesGradient {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  const T* saved = nullptr;     // as the forward step wrote them
  const T* previous = nullptr;  //
  T* dstate = nullptr;          // [rows, H]: dh', overwritten by its direct part of dh, z dh'
  T* dinput = nullptr;          // [rows, 3H]
  T* drecurrent = nullptr;      // [rows, 3H]
};
template <typename T>
void GruBackward(const GruGatesGradient<T>& step);

// scales[i] = 0 with the given probability, else 1 / (1 - probability): a pure function of (seed, i).
template <typename T>
void DropoutScales(std::uint64_t seed, double probability, std::int64_t n, T* scales);

// An independent seed for a named use of a seed (splitmix64, Steele et al. 2014).
std::uint64_t DeriveSeed(std::uint64_t seed, std::uint64_t use);

}  // namespace regard::nn

#endif  // REGARD_NN_GRU_KERNELS_H_
