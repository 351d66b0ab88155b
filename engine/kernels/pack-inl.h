// Rows of keys, transposed into panels.
#if defined(REGARD_ENGINE_KERNELS_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_PACK_INL_H_
#undef REGARD_ENGINE_KERNELS_PACK_INL_H_
#else
#define REGARD_ENGINE_KERNELS_PACK_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "engine/kernels/pack.h"
#include "engine/kernels/product-inl.h"
#include "engine/kernels/tiles.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// Rows of one head's tensor: row r starts at data + r * stride and is contiguous.
template <typename T>
struct Rows {
  const T* data = nullptr;
  Index stride = 0;
  const T* operator[](Index r) const { return data + r * stride; }
};

template <typename T>
HWY_INLINE Rows<T> RowsOf(const TensorView<const T, 4>& t, Index a, Index b) {
  return {t.data + a * t.strides[0] + b * t.strides[1], t.strides[2]};
}

#if HWY_TARGET != HWY_SCALAR
// Row block * kBlock + m of the panel in block `block` of each vector: kBlock numbers from `from` on.
template <typename T, std::size_t kBlock>
HWY_INLINE Vector<T> LoadBlocks(const T* from, Index stride) {
  const Lanes<T> d;
  auto v = hn::LoadDup128(d, from);
  HWY_UNROLL(4) for (std::size_t block = 1; block * kBlock < LanesOf<T>(); ++block) {
    const auto row = hn::LoadDup128(d, from + static_cast<Index>(block * kBlock) * stride);
    v = hn::IfThenElse(hn::FirstN(d, block * kBlock), v, row);
  }
  return v;
}

// out [kBlock, kPanel], one vector of each row = the transpose of rows [kLanes, kBlock]
HWY_INLINE void TransposeVector(const double* rows, Index stride, double* out) {
  const Lanes<double> d;
  const auto v0 = LoadBlocks<double, 2>(rows, stride), v1 = LoadBlocks<double, 2>(rows + stride, stride);
  hn::Store(hn::InterleaveLower(d, v0, v1), d, out);
  hn::Store(hn::InterleaveUpper(d, v0, v1), d, out + kPanel<double>);
}

HWY_INLINE void TransposeVector(const float* rows, Index stride, float* out) {
  const Lanes<float> d;
  const hn::Repartition<double, Lanes<float>> dd;
  const auto v0 = LoadBlocks<float, 4>(rows, stride), v1 = LoadBlocks<float, 4>(rows + stride, stride);
  const auto v2 = LoadBlocks<float, 4>(rows + 2 * stride, stride);
  const auto v3 = LoadBlocks<float, 4>(rows + 3 * stride, stride);
  const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, v0, v1));
  const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, v2, v3));
  const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, v0, v1));
  const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, v2, v3));
  constexpr std::size_t kWidth = kPanel<float>;
  hn::Store(hn::BitCast(d, hn::InterleaveLower(dd, low01, low23)), d, out);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23)), d, out + kWidth);
  hn::Store(hn::BitCast(d, hn::InterleaveLower(dd, high01, high23)), d, out + 2 * kWidth);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23)), d, out + 3 * kWidth);
}
#endif

// out [D, kPanel] = the transpose of rows [count, D], 0 beyond count
template <typename T>
HWY_INLINE void PackPanel(const T* rows, Index stride, std::size_t count, std::size_t D, T* out) {
  constexpr std::size_t kWidth = kPanel<T>;
  if (count < kWidth) std::fill(out, out + kWidth * D, T(0));
  std::size_t done = 0;  // dimensions
#if HWY_TARGET != HWY_SCALAR
  constexpr std::size_t kBlock = 16 / sizeof(T);
  if (count == kWidth) {
    for (; done + kBlock <= D; done += kBlock) {
      for (std::size_t x = 0; x < kWidth; x += LanesOf<T>()) {
        TransposeVector(rows + static_cast<Index>(x) * stride + done, stride, out + done * kWidth + x);
      }
    }
  }
#endif
  for (std::size_t x = 0; x < count; ++x) {
    for (std::size_t at = done; at < D; ++at)
      out[at * kWidth + x] = rows[static_cast<Index>(x) * stride + static_cast<Index>(at)];
  }
}

// Whether the sum of x * 0 is 0: it is NaN where one is NaN or infinite.
template <typename T>
HWY_INLINE bool IsFinite(const T* row, std::size_t size) {
  const Lanes<T> d;
  const auto zero = hn::Zero(d);
  auto sum = zero;
  for (std::size_t at = 0; at < size; at += hn::Lanes(d))
    sum = hn::MulAdd(LoadUpTo(row, at, size), zero, sum);
  return hn::AllTrue(d, hn::Eq(sum, zero));
}

// to [width] = from [size], then 0
template <typename T>
HWY_INLINE void CopyRow(const T* from, std::size_t size, std::size_t width, T* to) {
  std::copy(from, from + size, to);
  std::fill(to + size, to + width, T(0));
}

// 0 for every NaN and infinity
template <typename T>
HWY_INLINE void Clean(T* x, std::size_t size) {
  for (std::size_t at = 0; at < size; ++at) x[at] = std::isfinite(x[at]) ? x[at] : T(0);
}

// What Clean took from `row`, in to += factor row.
template <typename T>
HWY_INLINE void AddSpoilt(T factor, const T* row, std::size_t size, std::size_t stride, T* to) {
  for (std::size_t at = 0; at < size; ++at) {
    if (!std::isfinite(row[at])) to[at * stride] += factor * row[at];
  }
}

// Asks for rows before they are needed, in the order in which they lie: a transpose reads them all at once,
// which is more streams than the processor foresees.
template <typename T>
HWY_INLINE void FetchRows(const T* rows, Index stride, std::size_t count, std::size_t D) {
  for (std::size_t x = 0; x < count; ++x) {
    const T* row = rows + static_cast<Index>(x) * stride;
    for (std::size_t at = 0; at < D; at += 64 / sizeof(T)) hwy::Prefetch(row + at);
  }
}

// A tile's panels [kTileKeys / kPanel, D, kPanel] from its rows [count, D]. Panels that hold no row are left
// as they are.
template <typename T>
HWY_INLINE void PackPanels(const T* rows, Index stride, std::size_t count, std::size_t D, T* out) {
  constexpr std::size_t kWidth = kPanel<T>;
  for (std::size_t x = 0; x < count; x += kWidth, out += kWidth * D) {
    if (const std::size_t next = x + kWidth; next < count) {
      FetchRows(rows + static_cast<Index>(next) * stride, stride, std::min(kWidth, count - next), D);
    }
    PackPanel(rows + static_cast<Index>(x) * stride, stride, std::min(kWidth, count - x), D, out);
  }
}

template <typename T>
HWY_INLINE std::size_t PanelsSize(std::size_t count, std::size_t D) {
  return (count + kPanel<T> - 1) / kPanel<T> * kPanel<T> * D;
}

// Where key x's number of dimension 0 is in a tile's panels; dimension d is d * kPanel further.
template <typename T>
HWY_INLINE std::size_t PanelOffset(std::size_t x, std::size_t D) {
  return x / kPanel<T> * kPanel<T> * D + x % kPanel<T>;
}

// Whether a number of the row is beyond widest, or NaN.
template <typename T>
HWY_INLINE bool IsWide(const T* row, std::size_t size, T widest) {
  const Lanes<T> d;
  const auto limit = hn::Set(d, widest);
  for (std::size_t at = 0; at < size; at += hn::Lanes(d)) {
    if (!hn::AllTrue(d, hn::Le(hn::Abs(LoadUpTo(row, at, size)), limit))) return true;
  }
  return false;
}

// wide [kTileKeys]; a wide key is 0 in the panels.
template <typename T>
HWY_INLINE void TakeOutWide(const T* rows, Index stride, std::size_t count, std::size_t D, T widest,
                            T* panels, std::uint8_t* wide) {
  std::fill(wide, wide + kTileKeys, std::uint8_t{0});
  for (std::size_t x = 0; x < count; ++x) {
    if (!IsWide(rows + static_cast<Index>(x) * stride, D, widest)) continue;
    wide[x] = 1;
    T* key = panels + PanelOffset<T>(x, D);
    for (std::size_t at = 0; at < D; ++at) key[at * kPanel<T>] = T(0);
  }
}

// x becomes exp(2x); whole vectors. In float64, since what is made of them can be no better than they are.
HWY_INLINE void Exponentiate(double* x, std::size_t size) {
  const Lanes<double> d;
  for (std::size_t at = 0; at < size; at += hn::Lanes(d)) {
    const auto v = hn::Load(d, x + at);
    hn::Store(Exp<double>(hn::Add(v, v)), d, x + at);
  }
}

HWY_INLINE void Exponentiate(float* x, std::size_t size) {
  const Lanes<double> d;
  const hn::Rebind<float, Lanes<double>> df;
  for (std::size_t at = 0; at < size; at += hn::Lanes(d)) {
    const auto v = hn::PromoteTo(d, hn::Load(df, x + at));
    hn::Store(hn::DemoteTo(df, Exp<double>(hn::Add(v, v))), df, x + at);
  }
}

// A tile's panels in the score's form; wide [kTileKeys], where that is no product.
template <typename T>
HWY_INLINE void PackKeys(const T* rows, Index stride, std::size_t count, std::size_t D,
                         const KeyForm<T>& form, T* panels, std::uint8_t* wide) {
  PackPanels(rows, stride, count, D, panels);
  if (form.product) return;
  TakeOutWide(rows, stride, count, D, form.widest, panels, wide);
  if (form.exponentials) Exponentiate(panels, PanelsSize<T>(count, D));
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_PACK_INL_H_
