// The scores as the register-tiled kernels ask for them. A score made of products (kProduct) is a struct that
// has
//
//   Block(rows, vectors, q, q_stride, panel, D, s, stride)   s [rows, vectors] from rows and a panel of keys
//   Finish(place, keys, s)      from what Block left to the raw scores of a row
//   product_scale()             ds/dq = product_scale k, ds/dk = product_scale q, where it is not kNormed
//
// and one that is a sum of another term over the dimensions has
//
//   BlockOf<kM, kN>(q, q_stride, panel, parameter, D, s, stride)   as Block, raw scores
//   Pair, PairGradient          the same and its gradients for one pair, whatever its numbers
//   Gradient                    of two vectors of pairs, what the gradients are made of
//   QueryFactor, KeyFactor, ParameterGradient   the factors taken out of them, by the parameter
//   kCustom                     the caller's loop gives the gradients: no Gradient, no factors
//
// A compact kernel (kCompact) leaves u² in Block and Pair, and has a Finish of its own.
#if defined(REGARD_ENGINE_POLICIES_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_SCORES_INL_H_
#undef REGARD_ENGINE_POLICIES_SCORES_INL_H_
#else
#define REGARD_ENGINE_POLICIES_SCORES_INL_H_
#endif

#include "engine/kernels/tile-inl.h"
#include "engine/policies/additive-inl.h"
#include "engine/policies/compact-inl.h"
#include "engine/policies/custom-inl.h"
#include "engine/policies/gaussian-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// q·k
template <typename T>
struct ProductScore {
  static constexpr bool kProduct = true;
  static constexpr bool kCompact = false;
  static constexpr bool kNeverPositive = false;
  static constexpr bool kBoxed = false;

  HWY_INLINE void Block(std::size_t rows, std::size_t vectors, const T* q, std::size_t q_stride,
                        const T* panel, std::size_t D, T* s, std::size_t stride) const {
    Multiply<false>(rows, vectors, BlockProduct<T>{q, q_stride, panel, kPanel<T>, D, s, stride, false});
  }
};

template <typename T>
struct DotScore : ProductScore<T> {
  static constexpr bool kNormed = false;

  explicit DotScore(const Problem<T>& p) : scale(p.scale) {}

  // ds/dq = product_scale k, ds/dk = product_scale q
  T product_scale() const { return scale; }

  HWY_INLINE void Finish(const RowPlace&, RowRange keys, T* s) const {
    const std::size_t first = keys.FirstVector<T>();
    Scale(scale, keys.EndVector<T>() - first, s + first);
  }

  T scale;
};

template <typename T>
struct CosineScore : ProductScore<T> {
  static constexpr bool kNormed = true;

  explicit CosineScore(const Problem<T>& problem) : p(problem) {}

  T product_scale() const { return T(1); }

  // From dL/ds to the factor c of ds/dq = c k - .. q and ds/dk = c q - .. k. Returns sum_x ds_x s_x, which
  // the second terms of the row are made of, and adds ds_x s_x to column_sums.
  HWY_INLINE T ToProducts(const RowPlace& at, RowRange keys, const T* raw, T* ds, T* column_sums) const {
    const Lanes<T> d;
    const auto scale = hn::Set(d, p.scale), eps = hn::Set(d, p.eps);
    const auto q_norm = hn::Set(d, p.q_norm(at.b, at.h, at.i));
    const T* k_norm = &p.k_norm(at.b, at.g, at.j0);
    auto sum = hn::Zero(d);
    for (std::size_t x = keys.FirstVector<T>(); x < keys.hi; x += LanesOf<T>()) {
      const auto norm = hn::Mul(q_norm, LoadUpTo(k_norm, x, keys.hi));
      const auto g = hn::Load(d, ds + x);
      // A pair that is not allowed has no raw score, and ds 0.
      const auto varies = hn::And(hn::Gt(norm, eps), hn::Ne(g, hn::Zero(d)));
      const auto along = hn::IfThenElseZero(varies, hn::Mul(g, hn::Load(d, raw + x)));
      sum = hn::Add(sum, along);
      hn::Store(hn::Add(hn::Load(d, column_sums + x), along), d, column_sums + x);
      hn::Store(hn::Div(hn::Mul(g, scale), hn::Max(norm, eps)), d, ds + x);
    }
    return SumOf<T>(sum);
  }

  // to -= along / norm² row, both of whole vectors
  HWY_INLINE void SubtractAlong(T along, T norm, const T* row, std::size_t width, T* to) const {
    if (along == 0) return;
    const Lanes<T> d;
    const auto factor = hn::Set(d, along / (norm * norm));
    for (std::size_t x = 0; x < width; x += LanesOf<T>()) {
      hn::Store(hn::NegMulAdd(factor, hn::Load(d, row + x), hn::Load(d, to + x)), d, to + x);
    }
  }

  HWY_INLINE void Finish(const RowPlace& at, RowRange keys, T* s) const {
    const Lanes<T> d;
    const auto scale = hn::Set(d, p.scale), eps = hn::Set(d, p.eps);
    const auto q_norm = hn::Set(d, p.q_norm(at.b, at.h, at.i));
    const T* k_norm = &p.k_norm(at.b, at.g, at.j0);
    for (std::size_t x = keys.FirstVector<T>(); x < keys.hi; x += LanesOf<T>()) {
      const auto norm = hn::Max(hn::Mul(q_norm, LoadUpTo(k_norm, x, keys.hi)), eps);
      hn::Store(hn::Div(hn::Mul(scale, hn::Load(d, s + x)), norm), d, s + x);
    }
  }

  const Problem<T>& p;
};

template <typename T, typename F>
HWY_INLINE void VisitScore(const Problem<T>& problem, const F& f) {
  switch (problem.score) {
    case ScoreKind::kCosine:
      return f(CosineScore<T>(problem));
    case ScoreKind::kAdditive:
      return f(AdditiveScore<T>(problem));
    case ScoreKind::kGaussian:
      return f(GaussianScore<T>(problem));
    case ScoreKind::kCustom:
      return f(OwnScore<T>(problem));
    case ScoreKind::kCompact:
      return f(CompactScore<T>(problem));
    default:
      return f(DotScore<T>(problem));
  }
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_SCORES_INL_H_
