#include "nn/gru_kernels.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/base/target.h"

#define HWY_DISABLED_TARGETS HWY_SSSE3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/gru_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace regard::nn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of a tile: two vectors a row are kept in registers, of which AVX-512 has 32 and the others 16.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;

template <typename T>
std::int64_t PanelWidth() {
  return 2 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}
std::int64_t PanelWidthF32() { return PanelWidth<float>(); }
std::int64_t PanelWidthF64() { return PanelWidth<double>(); }

// kRows rows of y against one panel; `edge` receives them instead where the panel is wider than y.
template <int kRows, typename T>
HWY_INLINE void Tile(const T* HWY_RESTRICT x, std::int64_t ldx, std::int64_t inner,
                     const T* HWY_RESTRICT panel, T* HWY_RESTRICT y, std::int64_t ldy, bool accumulate) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  V a[kRows], b[kRows];
  for (int r = 0; r < kRows; ++r) {
    a[r] = accumulate ? hn::LoadU(d, y + r * ldy) : hn::Load(d, panel);
    b[r] = accumulate ? hn::LoadU(d, y + r * ldy + lanes) : hn::Load(d, panel + lanes);
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    panel += 2 * lanes;
    const V wa = hn::Load(d, panel), wb = hn::Load(d, panel + lanes);
    for (int r = 0; r < kRows; ++r) {
      const V xk = hn::Set(d, x[r * ldx + k]);
      a[r] = hn::MulAdd(xk, wa, a[r]);
      b[r] = hn::MulAdd(xk, wb, b[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    hn::StoreU(a[r], d, y + r * ldy);
    hn::StoreU(b[r], d, y + r * ldy + lanes);
  }
}

// The same where only `valid` columns of y exist.
template <int kRows, typename T>
void EdgeTile(const T* x, std::int64_t ldx, std::int64_t inner, const T* panel, T* y, std::int64_t ldy,
              bool accumulate, std::int64_t valid) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = PanelWidth<T>();
  HWY_ALIGN T edge[kRows * 2 * hn::MaxLanes(d)] = {};
  if (accumulate) {
    for (int r = 0; r < kRows; ++r) std::copy_n(y + r * ldy, valid, edge + r * width);
  }
  Tile<kRows>(x, ldx, inner, panel, edge, width, accumulate);
  for (int r = 0; r < kRows; ++r) std::copy_n(edge + r * width, valid, y + r * ldy);
}

template <int kRows, typename T>
void ProductRows(const ProductArgs<T>& a, std::int64_t row, const T* panel, std::int64_t column) {
  const std::int64_t valid = std::min(PanelWidth<T>(), a.columns - column);
  for (; row + kRows <= a.rows; row += kRows) {
    const T* x = a.x + row * a.ldx;
    T* y = a.y + row * a.ldy + column;
    if (valid == PanelWidth<T>()) {
      Tile<kRows>(x, a.ldx, a.inner, panel, y, a.ldy, a.accumulate);
    } else {
      EdgeTile<kRows>(x, a.ldx, a.inner, panel, y, a.ldy, a.accumulate, valid);
    }
  }
  if constexpr (kRows > 1) {
    if (row < a.rows) ProductRows<kRows / 2>(a, row, panel, column);
  }
}

template <typename T>
void ProductT(const ProductArgs<T>& a) {
  const std::int64_t width = PanelWidth<T>();
  const T* panel = a.panels;
  for (std::int64_t column = 0; column < a.columns; column += width) {
    ProductRows<kTileRows>(a, 0, panel, column);
    panel += (1 + a.inner) * width;
  }
}
void ProductF32(const ProductArgs<float>& a) { ProductT(a); }
void ProductF64(const ProductArgs<double>& a) { ProductT(a); }

// 1 / (1 + exp(-x)); a NaN stays one.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1);
  const V e = hn::Exp(d, hn::Neg(hn::Abs(x)));
  const V s = hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  return hn::IfThenElse(hn::IsNaN(x), x, s);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanhOrNaN(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, x));
}

// Calls body(d, i) for vectors that cover 0..n-1: whole ones, then single lanes.
template <typename T, class Body>
HWY_INLINE void ForVectors(std::int64_t n, const Body& body) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> d1;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(d, i);
  for (; i < n; ++i) body(d1, i);
}

template <typename T>
void ForwardT(const GruGates<T>& s) {
  const std::int64_t h = s.hidden;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const T* HWY_RESTRICT in = s.input + row * 3 * h;
    const T* HWY_RESTRICT rec = s.recurrent + row * 3 * h;
    T* HWY_RESTRICT state = s.state + row * h;
    T* HWY_RESTRICT output = s.output + row * s.output_stride;
    T* HWY_RESTRICT saved = s.saved ? s.saved + row * 4 * h : nullptr;
    T* HWY_RESTRICT previous = s.previous ? s.previous + row * h : nullptr;
    ForVectors<T>(h, [&](auto d, std::int64_t j) HWY_ATTR {
      const auto r = Sigmoid(d, hn::Add(hn::LoadU(d, in + j), hn::LoadU(d, rec + j)));
      const auto z = Sigmoid(d, hn::Add(hn::LoadU(d, in + h + j), hn::LoadU(d, rec + h + j)));
      const auto g = hn::LoadU(d, rec + 2 * h + j);
      const auto n = TanhOrNaN(d, hn::MulAdd(r, g, hn::LoadU(d, in + 2 * h + j)));
      const auto old = hn::LoadU(d, state + j);
      const auto next = hn::MulAdd(z, hn::Sub(old, n), n);
      hn::StoreU(next, d, state + j);
      hn::StoreU(next, d, output + j);
      if (previous) hn::StoreU(old, d, previous + j);
      if (saved) {
        hn::StoreU(r, d, saved + j);
        hn::StoreU(z, d, saved + h + j);
        hn::StoreU(n, d, saved + 2 * h + j);
        hn::StoreU(g, d, saved + 3 * h + j);
      }
    });
  }
}
void ForwardF32(const GruGates<float>& s) { ForwardT(s); }
void ForwardF64(const GruGates<double>& s) { ForwardT(s); }

template <typename T>
void BackwardT(const GruGatesGradient<T>& s) {
  const std::int64_t h = s.hidden;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const T* HWY_RESTRICT saved = s.saved + row * 4 * h;
    const T* HWY_RESTRICT previous = s.previous + row * h;
    T* HWY_RESTRICT dstate = s.dstate + row * h;
    T* HWY_RESTRICT din = s.dinput + row * 3 * h;
    T* HWY_RESTRICT drec = s.drecurrent + row * 3 * h;
    ForVectors<T>(h, [&](auto d, std::int64_t j) HWY_ATTR {
      const auto one = hn::Set(d, T{1});
      const auto r = hn::LoadU(d, saved + j);
      const auto z = hn::LoadU(d, saved + h + j);
      const auto n = hn::LoadU(d, saved + 2 * h + j);
      const auto g = hn::LoadU(d, saved + 3 * h + j);
      const auto dh = hn::LoadU(d, dstate + j);
      // Gradients by the arguments of tanh and the two sigmoids
      const auto keep = hn::Sub(one, z);
      const auto dn = hn::Mul(hn::Mul(dh, keep), hn::NegMulAdd(n, n, one));
      const auto dz = hn::Mul(hn::Mul(dh, hn::Sub(hn::LoadU(d, previous + j), n)), hn::Mul(z, keep));
      const auto dr = hn::Mul(hn::Mul(dn, g), hn::Mul(r, hn::Sub(one, r)));
      hn::StoreU(dr, d, din + j);
      hn::StoreU(dz, d, din + h + j);
      hn::StoreU(dn, d, din + 2 * h + j);
      hn::StoreU(dr, d, drec + j);
      hn::StoreU(dz, d, drec + h + j);
      hn::StoreU(hn::Mul(dn, r), d, drec + 2 * h + j);
      hn::StoreU(hn::Mul(dh, z), d, dstate + j);
    });
  }
}
void BackwardF32(const GruGatesGradient<float>& s) { BackwardT(s); }
void BackwardF64(const GruGatesGradient<double>& s) { BackwardT(s); }

// Two rounds of a 32-bit mixer (Wellons 2018, "Prospecting for hash functions") with a key before each: the
// plain loop is one that the compiler vectorises.
template <typename T>
void ScalesT(std::uint32_t key0, std::uint32_t key1, std::uint32_t threshold, T scale, std::int64_t n,
             T* HWY_RESTRICT scales) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(i);
    for (const std::uint32_t key : {key0, key1}) {
      x += key;
      x = (x ^ (x >> 16)) * 0x7feb352dU;
      x = (x ^ (x >> 15)) * 0x846ca68bU;
      x ^= x >> 16;
    }
    scales[i] = x < threshold ? T{0} : scale;
  }
}
void ScalesF32(std::uint32_t a, std::uint32_t b, std::uint32_t threshold, float scale, std::int64_t n,
               float* scales) {
  ScalesT(a, b, threshold, scale, n, scales);
}
void ScalesF64(std::uint32_t a, std::uint32_t b, std::uint32_t threshold, double scale, std::int64_t n,
               double* scales) {
  ScalesT(a, b, threshold, scale, n, scales);
}

}  // namespace HWY_NAMESPACE
}  // namespace regard::nn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::nn {

HWY_EXPORT(PanelWidthF32);
HWY_EXPORT(PanelWidthF64);
HWY_EXPORT(ProductF32);
HWY_EXPORT(ProductF64);
HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardF64);
HWY_EXPORT(BackwardF32);
HWY_EXPORT(BackwardF64);
HWY_EXPORT(ScalesF32);
HWY_EXPORT(ScalesF64);

// Calls the function of this name for T, for the instruction set in use.
#define REGARD_DISPATCH(name, ...)                         \
  [&] {                                                    \
    if constexpr (sizeof(T) == sizeof(float)) {            \
      return HWY_DYNAMIC_DISPATCH(name##F32)(__VA_ARGS__); \
    } else {                                               \
      return HWY_DYNAMIC_DISPATCH(name##F64)(__VA_ARGS__); \
    }                                                      \
  }()

template <typename T>
PackedMatrix<T>::PackedMatrix(const T* w, std::int64_t k, std::int64_t n, std::int64_t stride_k,
                              std::int64_t stride_n, const T* bias)
    : inner_(k), columns_(n) {
  // Before the width of a panel is asked for: the choice must not change under a packed matrix.
  if (const Status status = engine::ChooseTarget(); !status.ok()) throw Error(status.message());
  const std::int64_t width = REGARD_DISPATCH(PanelWidth);
  const std::int64_t panels = (n + width - 1) / width;
  panels_ =
      hwy::AllocateAligned<T>(static_cast<std::size_t>(std::max<std::int64_t>(1, panels * (1 + k) * width)));
  T* out = panels_.get();
  for (std::int64_t column = 0; column < n; column += width) {
    const std::int64_t valid = std::min(width, n - column);
    for (std::int64_t row = -1; row < k; ++row, out += width) {
      std::fill(out, out + width, T{0});
      if (row < 0) {
        if (bias) std::copy_n(bias + column, valid, out);
        continue;
      }
      const T* from = w + row * stride_k + column * stride_n;
      for (std::int64_t j = 0; j < valid; ++j) out[j] = from[j * stride_n];
    }
  }
}

template <typename T>
void Product(const T* x, std::int64_t ldx, std::int64_t rows, const PackedMatrix<T>& w, T* y,
             std::int64_t ldy, bool accumulate) {
  const ProductArgs<T> args{x, ldx, rows, w.inner(), w.columns(), w.panels(), y, ldy, accumulate};
  REGARD_DISPATCH(Product, args);
}

template <typename T>
void GruForward(const GruGates<T>& step) {
  REGARD_DISPATCH(Forward, step);
}

template <typename T>
void GruBackward(const GruGatesGradient<T>& step) {
  REGARD_DISPATCH(Backward, step);
}

template <typename T>
void DropoutScales(std::uint64_t seed, double probability, std::int64_t n, T* scales) {
  const std::uint64_t keys = DeriveSeed(seed, 0);
  const auto threshold = static_cast<std::uint32_t>(std::min(std::ldexp(probability, 32), 4294967295.0));
  REGARD_DISPATCH(Scales, static_cast<std::uint32_t>(keys), static_cast<std::uint32_t>(keys >> 32), threshold,
                  static_cast<T>(1 / (1 - probability)), n, scales);
}

std::uint64_t DeriveSeed(std::uint64_t seed, std::uint64_t use) {
  std::uint64_t x = seed + (use + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

#define REGARD_INSTANTIATE(T)                                                                           \
  template class PackedMatrix<T>;                                                                       \
  template void Product(const T*, std::int64_t, std::int64_t, const PackedMatrix<T>&, T*, std::int64_t, \
                        bool);                                                                          \
  template void GruForward(const GruGates<T>&);                                                         \
  template void GruBackward(const GruGatesGradient<T>&);                                                \
  template void DropoutScales(std::uint64_t, double, std::int64_t, T*);
REGARD_INSTANTIATE(float)
REGARD_INSTANTIATE(double)

}  // namespace regard::nn
#endif  // HWY_ONCE
