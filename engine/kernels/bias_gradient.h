// The gradient of the bias, dbias [B or 1, H or 1, L or 1, S or 1]: dL/ds_ij summed over the sizes of 1.
//
// Where it has an element for each (i, j), a tile's are written when the tile is computed; tasks that share
// elements, of other batches or heads, come one after the other. Else float64 sums of every batch and head
// are kept, and added up in order at the end.
#ifndef REGARD_ENGINE_KERNELS_BIAS_GRADIENT_H_
#define REGARD_ENGINE_KERNELS_BIAS_GRADIENT_H_

#include "engine/kernels/problem.h"

namespace regard::engine {

template <typename T>
struct BiasGradient {
  BiasGradient(const Problem<T>& p, const TensorView<T, 4>& dbias, bool accumulate)
      : to(dbias),
        add(accumulate),
        by_pair(dbias.shape[2] == p.L && dbias.shape[3] == p.S),
        by_key(!by_pair && dbias.shape[3] != 1),
        batches(by_pair && dbias.shape[0] == 1 ? p.B : 1),
        key_heads(by_pair && dbias.shape[1] == 1 ? p.G : 1),
        B(p.B),
        H(p.H) {
    for (std::size_t d = 0; d < 4; ++d) {
      if (to.shape[d] == 1) to.strides[d] = 0;
    }
  }

  // How many tasks share elements: those of `batches` and `key_heads`.
  Index shared() const { return std::max<Index>(1, batches * key_heads); }

  // [B, H, parts, L or 1] or [B, H, S or 1]: the last two sizes, for `parts` parts of the keys.
  void SetParts(Index parts) {
    rows = to.shape[2];
    arrays = by_key ? 1 : parts;
    per_head = by_key ? to.shape[3] : arrays * rows;
  }
  Index sums_size() const { return by_pair ? 0 : B * H * per_head; }

  // Where the sums of a key, or of a query in a part, are.
  double* KeySums(Index b, Index h, Index j) const { return sums + (b * H + h) * per_head + j; }
  double& QuerySum(Index b, Index h, Index part, Index i) const {
    return sums[(b * H + h) * per_head + part * rows + (rows == 1 ? 0 : i)];
  }

  // The row (b, h, i) of the gradient, from key j on, if by_pair.
  T* Row(Index b, Index h, Index i, Index j) const { return &to(b, h, i, j); }
  // Whether the row has been written before, by the caller or for another batch or head.
  bool Adds(Index b, Index h) const {
    return add || (b > 0 && to.strides[0] == 0) || (h > 0 && to.strides[1] == 0);
  }

  // From the sums to the gradient.
  void Reduce() const;

  TensorView<T, 4> to;  // strides of 0 where it is broadcast
  bool add, by_pair, by_key;
  Index batches, key_heads;
  Index B, H;
  Index rows = 0, arrays = 0, per_head = 0;
  double* sums = nullptr;  // 0 before the first task
};

template <typename T>
void BiasGradient<T>::Reduce() const {
  const auto range = [](Index size, Index full, Index at) { return size == 1 ? full : at + 1; };
  const auto& n = to.shape;
  for (Index b = 0; b < n[0]; ++b) {
    for (Index h = 0; h < n[1]; ++h) {
      for (Index at = 0; at < n[2] * n[3]; ++at) {  // by_pair: only where there is no batch or no head
        double sum = 0;
        for (Index bb = b; !by_pair && bb < range(n[0], B, b); ++bb) {
          for (Index hh = h; hh < range(n[1], H, h); ++hh) {
            for (Index part = 0; part < arrays; ++part) sum += KeySums(bb, hh, 0)[part * rows + at];
          }
        }
        T& x = to(b, h, at / n[3], at % n[3]);
        x = add ? x + static_cast<T>(sum) : static_cast<T>(sum);
      }
    }
  }
}

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_BIAS_GRADIENT_H_
