// s = sum_d f(q_d, k_d, w_d) on tiles, with f in a loop of the caller's (regard/custom.h).
#if defined(REGARD_ENGINE_POLICIES_CUSTOM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_CUSTOM_INL_H_
#undef REGARD_ENGINE_POLICIES_CUSTOM_INL_H_
#else
#define REGARD_ENGINE_POLICIES_CUSTOM_INL_H_
#endif

#include "engine/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
struct OwnScore {
  static constexpr bool kProduct = false;
  static constexpr bool kCustom = true;
  static constexpr bool kCompact = false;
  static constexpr bool kNormed = false;
  static constexpr bool kNeverPositive = false;
  static constexpr bool kBoxed = false;

  explicit OwnScore(const Problem<T>& p) : rows(*p.custom) {}

  template <std::size_t kM, std::size_t kN>
  HWY_INLINE void BlockOf(const T* q, std::size_t q_stride, const T* panel, const T* w, std::size_t D, T* s,
                          std::size_t stride) const {
    for (std::size_t m = 0; m < kM; ++m) {
      rows.Sum(q + m * q_stride, panel, w, static_cast<Index>(D), kPanel<T>, kN * LanesOf<T>(),
               s + m * stride);
    }
  }

  HWY_INLINE void Finish(const RowPlace&, RowRange, T*) const {}

  HWY_INLINE T Pair(const T* q, const T* k, const T* w, std::size_t D) const {
    T s = 0;
    rows.Sum(q, k, w, static_cast<Index>(D), 1, 1, &s);
    return s;
  }

  HWY_INLINE void PairGradient(const T* q, const T* k, const T* w, std::size_t D, T ds, T* dq, T* dk,
                               std::size_t dk_stride, double* dw) const {
    for (std::size_t at = 0; at < D; ++at) {
      T query = 0, weight = 0;
      rows.Differentiate(q[at], k + at, w == nullptr ? T(0) : w[at], 1, &ds, &query, dk + at * dk_stride,
                         &weight);
      dq[at] += query;
      dw[at] += static_cast<double>(weight);
    }
  }

  const ScoreRows<T>& rows;
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_CUSTOM_INL_H_
