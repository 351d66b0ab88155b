// s = -1/2 |a ∘ z|², z = q - k, on tiles, and its derivatives: as differences, so that nothing cancels where
// q and k are close.
#if defined(REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_
#undef REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_
#else
#define REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_
#endif

#include <limits>

#include "engine/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
struct GaussianScore {
  using V = Vector<T>;
  static constexpr bool kProduct = false;
  static constexpr bool kCustom = false;
  static constexpr bool kNormed = false;
  static constexpr bool kCompact = false;
  static constexpr bool kNeverPositive = true;
  static constexpr bool kBoxed = true;

  explicit GaussianScore(const Problem<T>& p) : GaussianScore(T(-0.5), p.shared_precision) {}
  GaussianScore(T factor_of_sum, bool shared_precision) : factor(factor_of_sum), shared(shared_precision) {}

  template <std::size_t kM, std::size_t kN>
  HWY_INLINE void BlockOf(const T* q, std::size_t q_stride, const T* panel, const T* a, std::size_t D, T* s,
                          std::size_t stride) const {
    const Lanes<T> d;
    constexpr std::size_t kLanes = LanesOf<T>(), kWidth = kPanel<T>;
    V sum[kM][kN];
    HWY_UNROLL(3) for (std::size_t m = 0; m < kM; ++m) {
      HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) sum[m][n] = hn::Zero(d);
    }
    for (std::size_t at = 0; at < D; ++at, panel += kWidth) {
      V k[kN];
      HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) k[n] = hn::Load(d, panel + n * kLanes);
      const auto av = hn::Set(d, a[at]);
      HWY_UNROLL(3) for (std::size_t m = 0; m < kM; ++m) {
        const auto qv = hn::Set(d, q[m * q_stride + at]);
        HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) {
          const auto z = hn::Sub(qv, k[n]);
          const auto az = shared ? z : hn::Mul(av, z);
          sum[m][n] = hn::MulAdd(az, az, sum[m][n]);
        }
      }
    }
    const T a0 = D == 0 || !shared ? T(1) : a[0];
    const auto scale = hn::Set(d, factor * a0 * a0);
    HWY_UNROLL(3) for (std::size_t m = 0; m < kM; ++m) {
      HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) {
        hn::Store(hn::Mul(scale, sum[m][n]), d, s + m * stride + n * kLanes);
      }
    }
  }

  HWY_INLINE void Finish(const RowPlace&, RowRange, T*) const {}

  HWY_INLINE T Pair(const T* q, const T* k, const T* a, std::size_t D) const {
    T s = 0;
    for (std::size_t at = 0; at < D; ++at) {
      const T az = a[at] * (q[at] - k[at]);
      s += az * az;
    }
    return factor * s;
  }

  HWY_INLINE void PairGradient(const T* q, const T* k, const T* a, std::size_t D, T ds, T* dq, T* dk,
                               std::size_t dk_stride, double* da) const {
    for (std::size_t at = 0; at < D; ++at) {
      const T z = q[at] - k[at], g = ds * a[at] * a[at] * z;
      dq[at] -= g;
      dk[at * dk_stride] += g;
      da[at] -= static_cast<double>(ds * a[at] * z * z);
    }
  }

  // Of two vectors of pairs: g = ds z, what dq and dk are made of, and u = ds z², what da is made of.
  HWY_INLINE void Gradient(V q, V k1, V k2, V ds1, V ds2, V& g1, V& g2, V& u1, V& u2) const {
    const auto z1 = hn::Sub(q, k1), z2 = hn::Sub(q, k2);
    g1 = hn::Mul(ds1, z1);
    g2 = hn::Mul(ds2, z2);
    u1 = hn::Mul(g1, z1);
    u2 = hn::Mul(g2, z2);
  }
  static T QueryFactor(T a) { return -a * a; }
  static T KeyFactor(T a) { return a * a; }
  static double ParameterGradient(T a, double u_sum) { return -static_cast<double>(a) * u_sum; }

  T factor;     // s = factor |a ∘ z|²
  bool shared;  // one precision for all dimensions: it is taken out of the sum
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_
