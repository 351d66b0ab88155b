// s = scale q·k;  ds/dq = scale k,  ds/dk = scale q
#if defined(REGARD_ENGINE_POLICIES_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_DOT_INL_H_
#undef REGARD_ENGINE_POLICIES_DOT_INL_H_
#else
#define REGARD_ENGINE_POLICIES_DOT_INL_H_
#endif

#include "engine/kernels/math-inl.h"
#include "engine/kernels/problem.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
struct DotScore {
  using V = Vector<T>;
  static constexpr std::size_t kCoefficients = 1;  // scale ds

  explicit DotScore(const Problem<T>& problem) : scale(problem.scale) {}

  HWY_INLINE V Term(V q, V k, V, V sum) const { return hn::MulAdd(q, k, sum); }

  void Finish(const RowPlace&, const std::int32_t*, std::size_t n, T* s) const {
    for (std::size_t at = 0; at < n; ++at) s[at] *= scale;
  }

  void Prepare(const RowPlace&, const std::int32_t*, std::size_t n, const T*, const T* ds,
               T* const* c) const {
    for (std::size_t at = 0; at < n; ++at) c[0][at] = scale * ds[at];
  }

  HWY_INLINE void Derivative(V q, V k, V, V c0, V, V, V& dq, V& dk, V&) const {
    dq = hn::MulAdd(c0, k, dq);
    dk = hn::MulAdd(c0, q, dk);
  }

  T scale;
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_DOT_INL_H_
