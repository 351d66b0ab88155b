#include "nn/activation_kernels.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS HWY_SSSE3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/activation_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/highway.h>

#include "engine/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::nn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using engine::HWY_NAMESPACE::Exp;
using engine::HWY_NAMESPACE::LoadFirst;
using engine::HWY_NAMESPACE::Polynomial;
using engine::HWY_NAMESPACE::Tanh;
using Tag = engine::HWY_NAMESPACE::Lanes<float>;
using V = engine::HWY_NAMESPACE::Vector<float>;

HWY_INLINE V Number(float x) { return hn::Set(Tag(), x); }

struct Relu {
  static HWY_INLINE V Value(V x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(Tag())), x); }
  static HWY_INLINE V Derivative(V x) { return hn::IfThenZeroElse(hn::Le(x, hn::Zero(Tag())), Number(1.0F)); }
};

struct Gelu {
  // erf(z) = 1 - (a_1 t + .. + a_5 t^5) exp(-z²), t = 1 / (1 + p z), for z = x / sqrt(2) >= 0 (Abramowitz and
  // Stegun 1964, 7.1.26); Phi(x) = (1 + erf(z)) / 2. `bell` is exp(-z²) = exp(-x² / 2).
  static HWY_INLINE V Phi(V x, V bell) {
    const V one = Number(1.0F), size = hn::Abs(x);
    const V t = hn::Div(one, hn::MulAdd(Number(0.3275911F * 0.70710678F), size, one));
    const V sum =  // over t
        Polynomial(t, {1.061405429F, -1.453152027F, 1.421413741F, -0.284496736F, 0.254829592F});
    const V tail = hn::Mul(hn::Mul(Number(0.5F), hn::Mul(sum, t)), bell);  // 1 - Phi(|x|)
    return hn::IfThenElse(hn::Lt(x, hn::Zero(Tag())), tail, hn::Sub(one, tail));
  }
  static HWY_INLINE V Bell(V x) { return Exp<float>(hn::Mul(Number(-0.5F), hn::Mul(x, x))); }
  static HWY_INLINE V Value(V x) { return hn::Mul(x, Phi(x, Bell(x))); }
  // Phi(x) + x exp(-x² / 2) / sqrt(2 pi)
  static HWY_INLINE V Derivative(V x) {
    const V bell = Bell(x);
    return hn::MulAdd(hn::Mul(x, Number(0.39894228F)), bell, Phi(x, bell));
  }
};

struct GeluTanh {
  static constexpr float kScale = 0.79788456F, kCubic = 0.044715F;  // sqrt(2 / pi)
  static HWY_INLINE V TanhOf(V x) {
    const V x2 = hn::Mul(x, x);
    return Tanh<float>(hn::Mul(Number(kScale), hn::MulAdd(hn::Mul(Number(kCubic), x2), x, x)));
  }
  static HWY_INLINE V Value(V x) {
    return hn::Mul(hn::Mul(Number(0.5F), x), hn::Add(Number(1.0F), TanhOf(x)));
  }
  // (1 + t) / 2 + x / 2 (1 - t²) sqrt(2 / pi) (1 + 3 * 0.044715 x²)
  static HWY_INLINE V Derivative(V x) {
    const V t = TanhOf(x), one = Number(1.0F), half = Number(0.5F);
    const V slope = hn::Mul(Number(kScale), hn::MulAdd(Number(3 * kCubic), hn::Mul(x, x), one));
    const V change = hn::Mul(hn::Mul(half, x), hn::Mul(hn::NegMulAdd(t, t, one), slope));
    // Far out 1 - t² is 0 and the slope may be infinite.
    return hn::MulAdd(half, hn::Add(one, t), hn::IfThenZeroElse(hn::Eq(hn::Mul(t, t), one), change));
  }
};

// out_i = f(x_i), or f(x_i) dy_i where dy is given.
template <class F>
HWY_INLINE void Each(std::int64_t n, const float* x, const float* dy, float* out, const F& f) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V y = f(hn::LoadU(d, x + i));
    hn::StoreU(dy == nullptr ? y : hn::Mul(y, hn::LoadU(d, dy + i)), d, out + i);
  }
  if (i == n) return;
  const auto left = static_cast<std::size_t>(n - i);
  const V y = f(LoadFirst(x + i, left));
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(dy == nullptr ? y : hn::Mul(y, LoadFirst(dy + i, left)), d, rest);
  std::copy_n(rest, left, out + i);
}

template <class F>
void Run(std::int64_t n, const float* x, const float* dy, float* out) {
  if (dy == nullptr) {
    Each(n, x, dy, out, [](V v) HWY_ATTR { return F::Value(v); });
  } else {
    Each(n, x, dy, out, [](V v) HWY_ATTR { return F::Derivative(v); });
  }
}

void Activations(Activation activation, std::int64_t n, const float* x, const float* dy, float* out) {
  switch (activation) {
    case Activation::kRelu:
      return Run<Relu>(n, x, dy, out);
    case Activation::kGelu:
      return Run<Gelu>(n, x, dy, out);
    case Activation::kGeluTanh:
      return Run<GeluTanh>(n, x, dy, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace regard::nn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::nn {
HWY_EXPORT(Activations);

void Activate(Activation activation, std::int64_t n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(Activations)(activation, n, x, nullptr, y);
}

void ActivateBackward(Activation activation, std::int64_t n, const float* x, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(Activations)(activation, n, x, dy, dx);
}

}  // namespace regard::nn
#endif  // HWY_ONCE
