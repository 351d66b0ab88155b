// s = w·t,  t = tanh(q + k);  ds/dq = ds/dk = w (1 - t²),  ds/dw = t
#if defined(REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_
#undef REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_
#else
#define REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_
#endif

#include "engine/kernels/math-inl.h"
#include "engine/kernels/problem.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
struct AdditiveScore {
  using V = Vector<T>;
  static constexpr std::size_t kCoefficients = 1;  // ds

  explicit AdditiveScore(const Problem<T>&) {}

  HWY_INLINE V Term(V q, V k, V w, V sum) const { return hn::MulAdd(w, Tanh<T>(hn::Add(q, k)), sum); }

  void Finish(const RowPlace&, const std::int32_t*, std::size_t, T*) const {}

  void Prepare(const RowPlace&, const std::int32_t*, std::size_t n, const T*, const T* ds,
               T* const* c) const {
    std::copy(ds, ds + n, c[0]);
  }

  HWY_INLINE void Derivative(V q, V k, V w, V c0, V, V, V& dq, V& dk, V& dw) const {
    const V t = Tanh<T>(hn::Add(q, k));
    const V slope = hn::NegMulAdd(t, t, hn::Set(Lanes<T>(), T(1)));
    const V g = hn::Mul(hn::Mul(c0, w), slope);
    dq = hn::Add(dq, g);
    dk = hn::Add(dk, g);
    dw = hn::MulAdd(c0, t, dw);
  }
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_ADDITIVE_INL_H_
