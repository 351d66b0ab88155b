#include "engine/kernels/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/pack.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which these need.
#include "engine/kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
HWY_INLINE bool PackTileOf(const TensorView<const T, 4>& from, Index b, Index g, Index tile,
                           const Panels<T>& panels, const PaddedRows<T>& rows) {
  const Index S = from.shape[2], j0 = tile * kTileKeys, j1 = std::min(S, j0 + kTileKeys);
  const auto D = static_cast<std::size_t>(from.shape[3]);
  const T* source = from.data + b * from.strides[0] + g * from.strides[1];
  const Index stride = from.strides[2];
  bool finite = true;
  for (Index j = j0; j < j1; ++j) {
    const bool row = IsFinite(source + j * stride, D);
    if (rows.spoilt != nullptr)
      rows.spoilt[(b * from.shape[1] + g) * S + j] = static_cast<std::uint8_t>(!row);
    finite = finite && row;
  }
  if (panels.data != nullptr) {
    const auto count = static_cast<std::size_t>(j1 - j0);
    PackKeys(source + j0 * stride, stride, count, D, panels.form, panels.Tile(b, g, tile),
             panels.Wide(b, g, tile));
    if (rows.spoilt != nullptr) Clean(panels.Tile(b, g, tile), PanelsSize<T>(count, D));
  }
  if (rows.copy != nullptr) {
    for (Index j = j0; j < j1; ++j) {
      T* to = rows.copy + b * rows.batch_stride + g * rows.head_stride + j * rows.stride;
      CopyRow(source + j * stride, D, static_cast<std::size_t>(rows.stride), to);
      if (rows.spoilt != nullptr) Clean(to, D);
    }
  }
  return finite;
}

template <typename T>
HWY_INLINE void RowNormsOf(const TensorView<const T, 4>& t, T* norms) {
  for (Index a = 0; a < t.shape[0]; ++a) {
    for (Index n = 0; n < t.shape[1]; ++n) {
      const Rows<T> rows = RowsOf(t, a, n);
      for (Index m = 0; m < t.shape[2]; ++m) {
        *norms++ = std::sqrt(Dot(rows[m], rows[m], static_cast<std::size_t>(t.shape[3])));
      }
    }
  }
}

void RowNormsF32(const TensorView<const float, 4>& rows, float* norms) { RowNormsOf(rows, norms); }
void RowNormsF64(const TensorView<const double, 4>& rows, double* norms) { RowNormsOf(rows, norms); }

const char* TargetHere() { return hwy::TargetName(HWY_TARGET); }

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
HWY_EXPORT(RowNormsF32);
HWY_EXPORT(RowNormsF64);
HWY_EXPORT(TargetHere);

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

template <>
void RowNorms(const TensorView<const float, 4>& rows, float* norms) {
  HWY_DYNAMIC_DISPATCH(RowNormsF32)(rows, norms);
}
template <>
void RowNorms(const TensorView<const double, 4>& rows, double* norms) {
  HWY_DYNAMIC_DISPATCH(RowNormsF64)(rows, norms);
}

const char* KernelTarget() { return HWY_DYNAMIC_DISPATCH(TargetHere)(); }

}  // namespace regard::engine
#endif  // HWY_ONCE
