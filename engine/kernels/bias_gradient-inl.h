// From a tile's dL/ds to the gradient of the bias.
#if defined(REGARD_ENGINE_KERNELS_BIAS_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_BIAS_GRADIENT_INL_H_
#undef REGARD_ENGINE_KERNELS_BIAS_GRADIENT_INL_H_
#else
#define REGARD_ENGINE_KERNELS_BIAS_GRADIENT_INL_H_
#endif

#include <algorithm>

#include "engine/kernels/bias_gradient.h"
#include "engine/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// sum_x ds_x over one tile, 0 outside the keys
template <typename T>
HWY_INLINE double SumInFloat64(const T* ds, const RowRange& keys) {
  constexpr std::size_t kSums = 8;
  double sums[kSums] = {};
  for (std::size_t x = keys.lo / kSums * kSums; x < keys.hi; x += kSums) {
    for (std::size_t n = 0; n < kSums; ++n) sums[n] += static_cast<double>(ds[x + n]);
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// ds [kTileKeys] of row r, 0 outside its keys; null: 0 everywhere.
template <typename T>
HWY_INLINE void AddToBias(const BiasGradient<T>& bias, const ScoreTile<T>& tile, std::size_t r, Index S,
                          Index part, const T* ds) {
  const Index b = tile.block().b, h = tile.head(r), i = tile.query(r), j0 = tile.j0();
  if (bias.by_pair) {
    const Index count = std::min(kTileKeys, S - j0), stride = bias.to.strides[3];
    T* to = bias.Row(b, h, i, j0);
    if (!bias.Adds(b, h)) {
      for (Index x = 0; x < count; ++x) to[x * stride] = ds == nullptr ? T(0) : ds[x] + T(0);  // no -0
    } else if (ds != nullptr) {
      for (Index x = 0; x < count; ++x) to[x * stride] += ds[x];
    }
    return;
  }
  const RowRange keys = tile.range(r);
  if (ds == nullptr || keys.empty()) return;
  if (!bias.by_key) {
    bias.QuerySum(b, h, part, i) += SumInFloat64(ds, keys);
    return;
  }
  double* sums = bias.KeySums(b, h, j0);
  for (std::size_t x = keys.lo; x < keys.hi; ++x) sums[x] += static_cast<double>(ds[x]);
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_BIAS_GRADIENT_INL_H_
