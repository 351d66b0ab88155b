// The registry of scores: one line each. A score is a struct in a file of its own that has
//
//   kCoefficients                        how many numbers a pair needs to be differentiated (1 or 3)
//   Term(q, k, a, sum)                   sum + one dimension's share of the score; a is the parameter
//   Outside(sum)                         where it has one: the pair does not exist (optional)
//   Finish(place, keys, n, s)            from the sums over d to the raw scores
//   Prepare(place, keys, n, raw, ds, c)  from dL/ds to the coefficients c of the derivative; raw: the raw
//   scores,
//                                        or the sums over d where the score has an outside
//   Derivative(q, k, a, c0, c1, c2, dq, dk, da)   adds one dimension's share of the gradients
//
// all of them on vectors along d, or on the n keys of one query.
#if defined(REGARD_ENGINE_POLICIES_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_POLICIES_SCORES_INL_H_
#undef REGARD_ENGINE_POLICIES_SCORES_INL_H_
#else
#define REGARD_ENGINE_POLICIES_SCORES_INL_H_
#endif

#include "engine/kernels/problem.h"
#include "engine/policies/additive-inl.h"
#include "engine/policies/cosine-inl.h"
#include "engine/policies/dot-inl.h"
#include "engine/policies/gaussian-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// Calls f with the problem's score.
template <typename T, typename F>
HWY_INLINE void VisitScore(const Problem<T>& problem, const F& f) {
  switch (problem.score) {
    case ScoreKind::kDot:
      return f(DotScore<T>(problem));
    case ScoreKind::kCosine:
      return f(CosineScore<T>(problem));
    case ScoreKind::kAdditive:
      return f(AdditiveScore<T>(problem));
    case ScoreKind::kGaussian:
      return f(GaussianScore<T>(problem));
    case ScoreKind::kCompact:
      return f(CompactScore<T>(problem));
  }
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_POLICIES_SCORES_INL_H_
