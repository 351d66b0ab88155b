// s = scale q·k / n,  n = max(|q||k|, eps)
// ds/dq = scale k / n - s q / |q|²,  ds/dk = scale q / n - s k / |k|²; where eps takes over, the second terms
// are 0.
#if defined(REGARD_ENGINE_POLICIES_COSINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_COSINE_INL_H_
#undef REGARD_ENGINE_POLICIES_COSINE_INL_H_
#else
#define REGARD_ENGINE_POLICIES_COSINE_INL_H_
#endif

#include "engine/kernels/math-inl.h"
#include "engine/kernels/problem.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
struct CosineScore {
  using V = Vector<T>;
  static constexpr std::size_t kCoefficients = 3;  // scale ds / n, s ds / |q|², s ds / |k|²

  explicit CosineScore(const Problem<T>& problem) : p(problem) {}

  HWY_INLINE V Term(V q, V k, V, V sum) const { return hn::MulAdd(q, k, sum); }

  void Finish(const RowPlace& at, const std::int32_t* keys, std::size_t n, T* s) const {
    const T q_norm = p.q_norm(at.b, at.h, at.i);
    for (std::size_t x = 0; x < n; ++x) {
      s[x] = p.scale * s[x] / std::max(q_norm * p.k_norm(at.b, at.g, at.j0 + keys[x]), p.eps);
    }
  }

  void Prepare(const RowPlace& at, const std::int32_t* keys, std::size_t n, const T* raw, const T* ds,
               T* const* c) const {
    const T q_norm = p.q_norm(at.b, at.h, at.i);
    for (std::size_t x = 0; x < n; ++x) {
      const T k_norm = p.k_norm(at.b, at.g, at.j0 + keys[x]);
      const T norm = q_norm * k_norm;
      const bool constant = norm <= p.eps;
      c[0][x] = ds[x] * p.scale / std::max(norm, p.eps);
      c[1][x] = constant ? T(0) : ds[x] * raw[x] / (q_norm * q_norm);
      c[2][x] = constant ? T(0) : ds[x] * raw[x] / (k_norm * k_norm);
    }
  }

  HWY_INLINE void Derivative(V q, V k, V, V c0, V c1, V c2, V& dq, V& dk, V&) const {
    dq = hn::NegMulAdd(c1, q, hn::MulAdd(c0, k, dq));
    dk = hn::NegMulAdd(c2, k, hn::MulAdd(c0, q, dk));
  }

  const Problem<T>& p;
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_COSINE_INL_H_
