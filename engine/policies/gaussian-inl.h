// s = -1/2 |a ∘ z|²,  z = q - k;  ds/dq = -a² z,  ds/dk = a² z,  ds/da = -a z²
// Taken as differences, so that nothing cancels where q and k are close.
#if defined(REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_
#undef REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_
#else
#define REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_
#endif

#include "engine/kernels/math-inl.h"
#include "engine/kernels/problem.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
struct GaussianScore {
  using V = Vector<T>;
  static constexpr std::size_t kCoefficients = 1;  // -ds

  explicit GaussianScore(const Problem<T>&) {}

  HWY_INLINE V Term(V q, V k, V a, V sum) const {
    const V az = hn::Mul(a, hn::Sub(q, k));
    return hn::MulAdd(az, az, sum);
  }

  void Finish(const RowPlace&, const std::int32_t*, std::size_t n, T* s) const {
    for (std::size_t at = 0; at < n; ++at) s[at] *= T(-0.5);
  }

  void Prepare(const RowPlace&, const std::int32_t*, std::size_t n, const T*, const T* ds,
               T* const* c) const {
    for (std::size_t at = 0; at < n; ++at) c[0][at] = -ds[at];
  }

  HWY_INLINE void Derivative(V q, V k, V a, V c0, V, V, V& dq, V& dk, V& da) const {
    const V z = hn::Sub(q, k);
    const V caz = hn::Mul(hn::Mul(c0, a), z);
    dq = hn::MulAdd(caz, a, dq);
    dk = hn::NegMulAdd(caz, a, dk);
    da = hn::MulAdd(caz, z, da);
  }
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_GAUSSIAN_INL_H_
