// Compact kernels on tiles: s = log K(u),  u² = |a ∘ z|²,  z = q - k. What is outside of the kernel does not
// exist. Inside, K is a power of t = 1 - u^n:
//
//            boxcar  triangular  Epanechnikov  tricube
//   K        1       1 - u       1 - u²        (1 - u³)³
//   slope    0       1 / (u t)   2 / t         9 u / t        slope = -(log K)'(u) / u
//
// and with c = slope dL/ds,  dq = -c a² z,  dk = c a² z,  da = -c a z²:  as for -1/2 u², whose slope is 1.
#if defined(REGARD_ENGINE_POLICIES_COMPACT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_COMPACT_INL_H_
#undef REGARD_ENGINE_POLICIES_COMPACT_INL_H_
#else
#define REGARD_ENGINE_POLICIES_COMPACT_INL_H_
#endif

#include "engine/kernels/tile-inl.h"
#include "engine/policies/gaussian-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
struct CompactScore : GaussianScore<T> {
  using V = Vector<T>;
  static constexpr bool kCompact = true;

  // Block and Pair give u². a z is rounded before it is squared, so that |z| = 1 / a is the edge wherever a z
  // is 1.
  explicit CompactScore(const Problem<T>& p) : GaussianScore<T>(T(1), false), kernel(p.kernel) {}

  // Whole vectors of u²: from them to K, 0 outside, or to log K, -inf outside. Where they are not null, a
  // copy goes to `copy` and the slopes to `slopes`.
  HWY_INLINE void Finish(std::size_t size, bool logs, T* s, T* copy, T* slopes) const {
    switch (kernel) {
      case CompactKernel::kBoxcar:
        return FinishAs<CompactKernel::kBoxcar>(size, logs, s, copy, slopes);
      case CompactKernel::kTriangular:
        return FinishAs<CompactKernel::kTriangular>(size, logs, s, copy, slopes);
      case CompactKernel::kEpanechnikov:
        return FinishAs<CompactKernel::kEpanechnikov>(size, logs, s, copy, slopes);
      case CompactKernel::kTricube:
        return FinishAs<CompactKernel::kTricube>(size, logs, s, copy, slopes);
    }
  }

  template <CompactKernel kKernel>
  HWY_INLINE void FinishAs(std::size_t size, bool logs, T* s, T* copy, T* slopes) const {
    const Lanes<T> d;
    for (std::size_t x = 0; x < size && slopes != nullptr; x += LanesOf<T>()) {
      hn::Store(Slope<kKernel>(hn::Load(d, s + x)), d, slopes + x);
    }
    for (std::size_t x = 0; x < size; x += LanesOf<T>()) {
      const auto u2 = hn::Load(d, s + x), t = Base<kKernel>(u2);
      const auto k = logs ? Log<kKernel>(u2, t) : Power<kKernel>(u2, t);
      hn::Store(k, d, s + x);
      if (copy != nullptr) hn::Store(k, d, copy + x);
    }
  }

  // NaN is not outside.
  template <CompactKernel kKernel>
  static HWY_INLINE auto Outside(V u2) {
    const auto one = hn::Set(Lanes<T>(), T(1));
    if constexpr (kKernel == CompactKernel::kBoxcar) return hn::Gt(u2, one);
    return hn::Ge(u2, one);
  }

  // u, below 1 where u² is.
  static HWY_INLINE V Root(V u2) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (sizeof(T) ==
                  4) {  // 14 bits, and all after a step of Newton's method: half the time of a root
      const Lanes<T> d;
      const __mmask16 normal = _mm512_cmp_ps_mask(u2.raw, _mm512_set1_ps(0x1p-126f), _CMP_NLT_UQ);
      const Vector<T> r{_mm512_maskz_rsqrt14_ps(normal, u2.raw)};
      const auto near = hn::Mul(u2, r);
      const auto u = hn::MulAdd(hn::NegMulAdd(near, near, u2), hn::Mul(hn::Set(d, T(0.5)), r), near);
      return hn::Min(hn::Set(d, 1 - 0x1p-24f), u);  // the second where that is NaN
    }
#endif
    return hn::Sqrt(u2);
  }

  // t. Where u² < 1 it is at least half of the last place of 1.
  template <CompactKernel kKernel>
  static HWY_INLINE V Base(V u2) {
    const auto one = hn::Set(Lanes<T>(), T(1));
    if constexpr (kKernel == CompactKernel::kBoxcar) return hn::Add(one, hn::Sub(u2, u2));  // 1, or NaN
    if constexpr (kKernel == CompactKernel::kTriangular) return hn::Sub(one, Root(u2));
    if constexpr (kKernel == CompactKernel::kEpanechnikov) return hn::Sub(one, u2);
    return hn::NegMulAdd(u2, Root(u2), one);
  }

  template <CompactKernel kKernel>
  static HWY_INLINE V Power(V u2, V t) {
    const auto k = kKernel == CompactKernel::kTricube ? hn::Mul(hn::Mul(t, t), t) : t;
    return hn::IfThenZeroElse(Outside<kKernel>(u2), k);
  }

  template <CompactKernel kKernel>
  static HWY_INLINE V Log(V u2, V t) {
    const Lanes<T> d;
    const auto minus_infinity = hn::Set(d, kMinusInfinity<T>);
    if constexpr (kKernel == CompactKernel::kBoxcar) {
      return hn::IfThenElse(Outside<kKernel>(u2), minus_infinity, hn::Sub(t, t));
    }
    const auto log = hn::Log(d, t);
    const auto k = kKernel == CompactKernel::kTricube ? hn::Mul(hn::Set(d, T(3)), log) : log;
    const auto inside = hn::IfThenElse(hn::Eq(u2, u2), k, u2);
    return hn::IfThenElse(Outside<kKernel>(u2), minus_infinity, inside);
  }

  template <CompactKernel kKernel>
  static HWY_INLINE V Slope(V u2) {
    const Lanes<T> d;
    const auto t = Base<kKernel>(u2), u = Root(u2);
    auto slope = hn::Zero(d);
    if constexpr (kKernel == CompactKernel::kTriangular) {
      const auto one = hn::Set(d, T(1));  // the kernel has a corner where u is 0: it is left out
      slope = hn::IfThenZeroElse(hn::Eq(u, hn::Zero(d)), hn::Div(one, hn::Mul(u, t)));
    }
    if constexpr (kKernel == CompactKernel::kEpanechnikov) slope = hn::Div(hn::Set(d, T(2)), t);
    if constexpr (kKernel == CompactKernel::kTricube) slope = hn::Div(hn::Mul(hn::Set(d, T(9)), u), t);
    return hn::IfThenZeroElse(Outside<kKernel>(u2), slope);
  }

  CompactKernel kernel;
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_COMPACT_INL_H_
