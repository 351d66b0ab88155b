// Compact kernels: s = log K(u),  u² = |a ∘ z|²,  z = q - k;  ds/dq = r a² z,  ds/dk = -r a² z,  ds/da = r a
// z², where r = (log K)'(u) / u. What is outside of the kernel does not exist.
#if defined(REGARD_ENGINE_POLICIES_COMPACT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_COMPACT_INL_H_
#undef REGARD_ENGINE_POLICIES_COMPACT_INL_H_
#else
#define REGARD_ENGINE_POLICIES_COMPACT_INL_H_
#endif

#include <cmath>

#include "engine/kernels/math-inl.h"
#include "engine/kernels/problem.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
struct CompactScore {
  using V = Vector<T>;

  explicit CompactScore(const Problem<T>& problem) : kernel(problem.kernel) {}

  // sum + one dimension's share of u²
  HWY_INLINE V Term(V q, V k, V a, V sum) const {
    const V az = hn::Mul(a, hn::Sub(q, k));
    return hn::MulAdd(az, az, sum);
  }

  // NaN is not outside.
  bool Outside(T u2) const { return kernel == CompactKernel::kBoxcar ? u2 > 1 : u2 >= 1; }

  // From u² to s, and from u² and dL/ds to r dL/ds.
  void Finish(std::size_t n, T* s) const {
    for (std::size_t at = 0; at < n; ++at) s[at] = LogKernel(s[at]);
  }
  void Prepare(std::size_t n, const T* u2, const T* ds, T* c) const {
    for (std::size_t at = 0; at < n; ++at) c[at] = ds[at] * Slope(u2[at]);
  }

  // Adds one dimension's share of the gradients; c is r dL/ds.
  HWY_INLINE void Derivative(V q, V k, V a, V c, V& dq, V& dk, V& da) const {
    const V z = hn::Sub(q, k);
    const V caz = hn::Mul(hn::Mul(c, a), z);
    dq = hn::MulAdd(caz, a, dq);
    dk = hn::NegMulAdd(caz, a, dk);
    da = hn::MulAdd(caz, z, da);
  }

  T LogKernel(T u2) const {
    switch (kernel) {
      case CompactKernel::kBoxcar:
        return u2 - u2;  // 0, or NaN
      case CompactKernel::kTriangular:
        return std::log(1 - std::sqrt(u2));
      case CompactKernel::kEpanechnikov:
        return std::log(1 - u2);
      case CompactKernel::kTricube:
        break;
    }
    return 3 * std::log(1 - u2 * std::sqrt(u2));
  }

  // r. It is finite: where u² < 1, 1 - u is at least half of the last place of 1.
  T Slope(T u2) const {
    const T u = std::sqrt(u2);
    switch (kernel) {
      case CompactKernel::kBoxcar:
        return 0;
      case CompactKernel::kTriangular:
        return u == 0 ? T(0) : -1 / (u * (1 - u));
      case CompactKernel::kEpanechnikov:
        return -2 / (1 - u2);
      case CompactKernel::kTricube:
        break;
    }
    return -9 * u / (1 - u * u2);
  }

  CompactKernel kernel;
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_COMPACT_INL_H_
