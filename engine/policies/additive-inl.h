// s = w·tanh(q + k) on tiles, and its derivatives
//
// With a = exp(2q) and b = exp(2k), made once for each number of q and k,
//
//   tanh(q + k) = 1 - 2 r,   r = 1 / (1 + a b),   1 - tanh² = 4 (r - r²)
//
// so a pair costs a multiply-add and a reciprocal for each dimension; two dimensions share a reciprocal:
// w1 / y1 + w2 / y2 = (w1 y2 + w2 y1) / (y1 y2). What is summed is w (r - 1/2), whose parts are as small as
// those of w tanh.
#if defined(REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_
#undef REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_
#else
#define REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_
#endif

#include <cmath>

#include "engine/kernels/exp-inl.h"
#include "engine/kernels/pack.h"
#include "engine/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// n / y, y > 0
template <typename T>
HWY_INLINE Vector<T> Quotient(Vector<T> n, Vector<T> y) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) == 4) {  // 14 bits, and 28 after a step of Newton's method
    const auto r = Vector<T>{_mm512_rcp14_ps(y.raw)};
    const auto two = hn::Set(Lanes<T>(), T(2));
    return hn::Mul(hn::Mul(n, r), hn::NegMulAdd(y, r, two));
  }
#endif
  return hn::Div(n, y);
}

template <typename T>
struct AdditiveScore {
  using V = Vector<T>;
  static constexpr bool kProduct = false;
  static constexpr bool kCustom = false;
  static constexpr bool kNormed = false;
  static constexpr bool kCompact = false;
  static constexpr bool kNeverPositive = false;
  static constexpr bool kBoxed = false;

  explicit AdditiveScore(const Problem<T>&) {}

  template <std::size_t kM, std::size_t kN>
  HWY_INLINE void BlockOf(const T* a, std::size_t a_stride, const T* panel, const T* w, std::size_t D, T* s,
                          std::size_t stride) const {
    const Lanes<T> d;
    constexpr std::size_t kLanes = LanesOf<T>(), kWidth = kPanel<T>;
    const auto one = hn::Set(d, T(1));
    V sum[kM][kN];
    HWY_UNROLL(3) for (std::size_t m = 0; m < kM; ++m) {
      HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) sum[m][n] = hn::Zero(d);
    }
    std::size_t at = 0;
    for (; at + 2 <= D; at += 2, panel += 2 * kWidth) {
      const auto w1 = hn::Set(d, w[at]), w2 = hn::Set(d, w[at + 1]);
      const auto mean = hn::Mul(hn::Set(d, T(0.5)), hn::Add(w1, w2));
      HWY_UNROLL(3) for (std::size_t m = 0; m < kM; ++m) {
        const auto a1 = hn::Set(d, a[m * a_stride + at]), a2 = hn::Set(d, a[m * a_stride + at + 1]);
        HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) {
          const auto y1 = hn::MulAdd(a1, hn::Load(d, panel + n * kLanes), one);
          const auto y2 = hn::MulAdd(a2, hn::Load(d, panel + kWidth + n * kLanes), one);
          const auto top = hn::MulAdd(w2, y1, hn::Mul(w1, y2));
          sum[m][n] = hn::Add(sum[m][n], hn::Sub(Quotient<T>(top, hn::Mul(y1, y2)), mean));
        }
      }
    }
    if (at < D) {
      const auto w1 = hn::Set(d, w[at]), mean = hn::Set(d, T(0.5) * w[at]);
      HWY_UNROLL(3) for (std::size_t m = 0; m < kM; ++m) {
        const auto a1 = hn::Set(d, a[m * a_stride + at]);
        HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) {
          const auto y = hn::MulAdd(a1, hn::Load(d, panel + n * kLanes), one);
          sum[m][n] = hn::Add(sum[m][n], hn::Sub(Quotient<T>(w1, y), mean));
        }
      }
    }
    const auto minus_two = hn::Set(d, T(-2));
    HWY_UNROLL(3) for (std::size_t m = 0; m < kM; ++m) {
      HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) {
        hn::Store(hn::Mul(minus_two, sum[m][n]), d, s + m * stride + n * kLanes);
      }
    }
  }

  HWY_INLINE void Finish(const RowPlace&, RowRange, T*) const {}

  // One pair: the score.
  HWY_INLINE T Pair(const T* q, const T* k, const T* w, std::size_t D) const {
    T s = 0;
    for (std::size_t at = 0; at < D; ++at) s += w[at] * std::tanh(q[at] + k[at]);
    return s;
  }

  // One pair: what ds adds to the gradients; dk and dw have strides of their own.
  HWY_INLINE void PairGradient(const T* q, const T* k, const T* w, std::size_t D, T ds, T* dq, T* dk,
                               std::size_t dk_stride, double* dw) const {
    for (std::size_t at = 0; at < D; ++at) {
      const T t = std::tanh(q[at] + k[at]);
      const T g = ds * w[at] * (T(1) - t * t);
      dq[at] += g;
      dk[at * dk_stride] += g;
      dw[at] += static_cast<double>(ds * t);
    }
  }

  // Of two vectors of pairs: g = ds (1 - t²), what dq and dk are made of, and u = ds t, what dw is made of.
  HWY_INLINE void Gradient(V a, V b1, V b2, V ds1, V ds2, V& g1, V& g2, V& u1, V& u2) const {
    const auto one = hn::Set(Lanes<T>(), T(1));
    const auto y1 = hn::MulAdd(a, b1, one), y2 = hn::MulAdd(a, b2, one);
    const auto r = Quotient<T>(hn::Set(Lanes<T>(), T(2)), hn::Mul(y1, y2));
    const auto t1 = hn::NegMulAdd(y2, r, one), t2 = hn::NegMulAdd(y1, r, one);
    u1 = hn::Mul(ds1, t1);
    u2 = hn::Mul(ds2, t2);
    g1 = hn::NegMulAdd(u1, t1, ds1);
    g2 = hn::NegMulAdd(u2, t2, ds2);
  }
  static T QueryFactor(T w) { return w; }
  static T KeyFactor(T w) { return w; }
  static double ParameterGradient(T, double u_sum) { return u_sum; }
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_
