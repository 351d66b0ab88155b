#include "engine/kernels/pack.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/pack.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which these need.
#include "engine/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// out [D, kPanel] = the transpose of rows [count, D]
template <typename T>
HWY_INLINE void PackPanel(const T* rows, Index stride, std::size_t count, std::size_t D, T* out) {
  constexpr std::size_t kWidth = kPanel<T>;
  if (count < kWidth) std::fill(out, out + kWidth * D, T(0));
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  constexpr std::size_t kLanes = LanesOf<T>();
  const Lanes<T> d;
  const hn::RebindToSigned<Lanes<T>> di;
  using Offset = hn::TFromD<decltype(di)>;
  if (count == kWidth && stride * static_cast<Index>(kLanes) < (Index{1} << 30)) {
    const auto offsets = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<Offset>(stride)));
    for (std::size_t at = 0; at < D; ++at) {
      for (std::size_t n = 0; n < kPanelVectors; ++n) {
        const T* base = rows + static_cast<Index>(n * kLanes) * stride + at;
        hn::StoreU(hn::GatherIndex(d, base, offsets), d, out + at * kWidth + n * kLanes);
      }
    }
    return;
  }
#endif
  for (std::size_t x = 0; x < count; ++x) {
    for (std::size_t at = 0; at < D; ++at) out[at * kWidth + x] = rows[static_cast<Index>(x) * stride + at];
  }
}

// Whether the sum of x * 0 is 0: it is NaN where one is NaN or infinite.
template <typename T>
HWY_INLINE bool IsFinite(const T* row, std::size_t size) {
  const Lanes<T> d;
  const auto zero = hn::Zero(d);
  auto sum = zero;
  for (std::size_t at = 0; at < size; at += hn::Lanes(d)) sum = hn::MulAdd(LoadUpTo(row, at, size), zero, sum);
  return hn::AllTrue(d, hn::Eq(sum, zero));
}

template <typename T>
HWY_INLINE bool PackTileOf(const TensorView<const T, 4>& from, Index b, Index g, Index tile,
                           const Panels<T>& panels, const PaddedRows<T>& rows) {
  const Index S = from.shape[2], j0 = tile * kTileKeys, j1 = std::min(S, j0 + kTileKeys);
  const auto D = static_cast<std::size_t>(from.shape[3]);
  const T* source = from.data + b * from.strides[0] + g * from.strides[1];
  const Index stride = from.strides[2];
  bool finite = true;
  for (Index j = j0; j < j1; ++j) finite = IsFinite(source + j * stride, D) && finite;
  if (panels.data != nullptr) {
    constexpr auto kWidth = static_cast<Index>(kPanel<T>);
    T* out = panels.Tile(b, g, tile);
    for (Index j = j0; j < j0 + kTileKeys; j += kWidth, out += kWidth * from.shape[3]) {
      const Index count = std::clamp<Index>(j1 - j, 0, kWidth);
      PackPanel(source + j * stride, stride, static_cast<std::size_t>(count), D, out);
    }
  }
  if (rows.copy != nullptr) {
    for (Index j = j0; j < j1; ++j) {
      T* to = rows.copy + b * rows.batch_stride + g * rows.head_stride + j * rows.stride;
      std::copy(source + j * stride, source + j * stride + D, to);
      std::fill(to + D, to + rows.stride, T(0));
    }
  }
  return finite;
}

bool PackTileF32(const TensorView<const float, 4>& from, Index b, Index g, Index tile,
                 const Panels<float>& panels, const PaddedRows<float>& rows) {
  return PackTileOf(from, b, g, tile, panels, rows);
}
bool PackTileF64(const TensorView<const double, 4>& from, Index b, Index g, Index tile,
                 const Panels<double>& panels, const PaddedRows<double>& rows) {
  return PackTileOf(from, b, g, tile, panels, rows);
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::engine {

HWY_EXPORT(PackTileF32);
HWY_EXPORT(PackTileF64);

template <>
bool PackTile(const TensorView<const float, 4>& from, Index b, Index g, Index tile,
              const Panels<float>& panels, const PaddedRows<float>& rows) {
  return HWY_DYNAMIC_DISPATCH(PackTileF32)(from, b, g, tile, panels, rows);
}
template <>
bool PackTile(const TensorView<const double, 4>& from, Index b, Index g, Index tile,
              const Panels<double>& panels, const PaddedRows<double>& rows) {
  return HWY_DYNAMIC_DISPATCH(PackTileF64)(from, b, g, tile, panels, rows);
}

}  // namespace regard::engine
#endif  // HWY_ONCE
