// From a row's scores to its weights, and to the gradient by its scores.
#if defined(REGARD_ENGINE_KERNELS_ROW_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_ROW_GRADIENT_INL_H_
#undef REGARD_ENGINE_KERNELS_ROW_GRADIENT_INL_H_
#else
#define REGARD_ENGINE_KERNELS_ROW_GRADIENT_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "engine/kernels/bias_gradient-inl.h"
#include "engine/kernels/tile-inl.h"
#include "engine/kernels/tiled_backward.h"
#include "engine/policies/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T, typename Score>
class RowGradient {
 public:
  // dp [rows, kTileKeys]. forbidden, of the same shape: what the mask says of each pair, where the call is
  // spoilt.
  RowGradient(const TiledBackwardCall<T>& call, const ScoreTile<T>& tile, T* dp,
              const std::uint8_t* forbidden, Scratch* scratch)
      : call_(call),
        p_(call.problem),
        up_(call.upstream),
        tile_(tile),
        scale_(tile.exponent_scale()),
        middle_(0.5 * std::log2(static_cast<double>(std::max<Index>(1, p_.S)))),
        dp_(dp),
        forbidden_(forbidden) {
    if (p_.change != nullptr) {
      change_terms_ = scratch->Take<T>(static_cast<std::size_t>(call.change_size()) * kKeys);
    }
  }

  // A task begins; change_sums [group, n] are its sums of the gradients of a change's parameters.
  void Start(Index part, double* change_sums) {
    part_ = part;
    change_sums_ = change_sums;
  }

  // A row's s becomes p drop, its dp becomes ds by the raw score; both 0 outside its keys.
  HWY_INLINE void Differentiate(std::size_t r) {
    const Lanes<T> d;
    constexpr std::size_t kLanes = LanesOf<T>();
    const RowRange keys = tile_.range(r);
    const Index h = tile_.head(r), i = tile_.query(r);
    const T lse = up_.lse(tile_.block().b, h, i);
    T *p = tile_.s(r), *dp = dp_ + r * kKeys;
    const std::size_t first = keys.FirstVector<T>(), end = keys.EndVector<T>();
    if (keys.empty() || lse == kMinusInfinity<T>) {
      std::fill(p, p + kKeys, T(0));
      std::fill(dp, dp + kKeys, T(0));
      AddBias(r, nullptr);
      return;
    }
    if (first > 0) std::fill(p, p + first, T(0)), std::fill(dp, dp + first, T(0));
    if (end < kKeys) std::fill(p + end, p + kKeys, T(0)), std::fill(dp + end, dp + kKeys, T(0));
    if (!call_.to_values()) std::fill(dp + first, dp + end, T(0));

    if (call_.spoilt) ClearForbidden(r, dp);

    // p = exp(s - lse) = 2^(s - shift) 2^(shift - lse), with a whole number near the middle between the
    // largest score and that of equal weights: exponents near 0 are rounded least.
    const double lse2 = static_cast<double>(lse) * kLog2E;
    const double whole = tile_.weighs() ? 0.0 : std::nearbyint(lse2 - middle_);
    T rest = static_cast<T>(std::exp2(whole - lse2)), row_shift = static_cast<T>(whole);
    if (call_.shifts != nullptr) {
      const Index at = (tile_.block().b * p_.H + h) * p_.L + i;
      rest = call_.inverse_sums[at];
      row_shift = call_.shifts[at];
    }
    const auto scale = hn::Set(d, scale_);
    const auto shift = hn::Set(d, row_shift);
    const bool simple = p_.soft() && !call_.row_in_tile() && !p_.dropout.active() && !up_.dweights;
    if (simple) {
      const auto term = hn::Set(d, call_.row_term[(tile_.block().b * p_.H + h) * p_.L + i]),
                 rest_v = hn::Set(d, rest);
      for (std::size_t x = first; x < end; x += kLanes) {
        const auto e = hn::Mul(rest_v, Weight<Score>(tile_, p + x, scale, shift));
        hn::Store(e, d, p + x);
        hn::Store(hn::Mul(e, hn::Add(hn::Load(d, dp + x), term)), d, dp + x);
      }
    } else if (p_.soft()) {
      GeneralRow(r, scale, shift, rest);
    } else {
      ChoiceRow(r, scale, shift, rest);
    }
    if (call_.spoilt) ClearForbidden(r, p), ClearForbidden(r, dp);
    AddBias(r, dp);
    if (p_.change != nullptr) DifferentiateChange(r, dp);
    if (const T* slope = tile_.slope(r)) {
      for (std::size_t x = first; x < end; x += kLanes) {
        const auto g = hn::Load(d, dp + x);
        const auto none = hn::Eq(g, hn::Zero(d));  // a pair that is not allowed has any slope, also NaN
        hn::Store(hn::IfThenZeroElse(none, hn::Mul(g, hn::Load(d, slope + x))), d, dp + x);
      }
    }
  }

  // The chosen key's place in the tile; kKeys: not here.
  std::size_t Chosen(std::size_t r) const {
    const Index x = (*up_.index)(tile_.block().b, tile_.head(r), tile_.query(r)) - tile_.j0();
    return x >= 0 && x < kTileKeys && tile_.MaskAllows(r, static_cast<std::size_t>(x))
               ? static_cast<std::size_t>(x)
               : kKeys;
  }

  // ds [kTileKeys]; null: 0
  HWY_INLINE void AddBias(std::size_t r, const T* ds) const {
    if (call_.bias != nullptr) AddToBias(*call_.bias, tile_, r, p_.S, part_, ds);
  }

 private:
  static constexpr std::size_t kKeys = static_cast<std::size_t>(kTileKeys);

  void ClearForbidden(std::size_t r, T* row) const {
    for (std::size_t x = 0; x < kKeys; ++x) {
      if (forbidden_[r * kKeys + x]) row[x] = T(0);
    }
  }

  // From the gradient by the changed scores to that by the scores before, and by the parameters.
  HWY_NOINLINE void DifferentiateChange(std::size_t r, T* dp) const {
    const Lanes<T> d;
    const RowRange keys = tile_.range(r);
    const Index h = tile_.head(r), size = call_.change_size();
    p_.change->Differentiate(tile_.pairs(r), p_.ChangeParameters(h), tile_.unchanged(r) + keys.lo,
                             dp + keys.lo, change_terms_);
    const std::size_t count = keys.hi - keys.lo;
    const T* terms = change_terms_;
    for (Index n = 0; n < size; ++n, terms += kKeys) {
      auto sum = hn::Zero(d);
      for (std::size_t x = 0; x < count; x += LanesOf<T>()) sum = hn::Add(sum, LoadUpTo(terms, x, count));
      change_sums_[(h - tile_.block().g * p_.group) * size + n] += static_cast<double>(SumOf<T>(sum));
    }
  }

  // A row's s becomes p.
  HWY_INLINE void RowOfP(std::size_t r, Vector<T> scale, Vector<T> shift, T rest) {
    const Lanes<T> d;
    const RowRange keys = tile_.range(r);
    const std::size_t first = keys.FirstVector<T>(), end = keys.EndVector<T>();
    T* p = tile_.s(r);
    VectorSum<T> sum;
    for (std::size_t x = first; x < end; x += LanesOf<T>()) {
      const auto e = Weight<Score>(tile_, p + x, scale, shift);
      sum[x] = hn::Add(sum[x], e);
      hn::Store(e, d, p + x);
    }
    if (!call_.row_in_tile()) return Scale(rest, end - first, p + first);
    const auto divisor = hn::Set(d, sum.Total());  // its own sum: lse is rounded
    for (std::size_t x = first; x < end; x += LanesOf<T>()) {
      hn::Store(hn::Div(hn::Load(d, p + x), divisor), d, p + x);
    }
  }

  // Argmax and Sample: ds_x = p_x (dlse - dlog_prob), and dlog_prob more for the chosen key.
  HWY_NOINLINE void ChoiceRow(std::size_t r, Vector<T> scale, Vector<T> shift, T rest) {
    const Lanes<T> d;
    RowOfP(r, scale, shift, rest);
    const RowRange keys = tile_.range(r);
    const Index h = tile_.head(r), i = tile_.query(r);
    const T dlse = up_.dlse ? (*up_.dlse)(tile_.block().b, h, i) : T(0);
    const T dlog_prob = up_.dlog_prob ? (*up_.dlog_prob)(tile_.block().b, h, i) : T(0);
    T* ds = dp_ + r * kKeys;
    const auto term = hn::Set(d, dlse - dlog_prob);
    for (std::size_t x = keys.FirstVector<T>(); x < keys.EndVector<T>(); x += LanesOf<T>()) {
      hn::Store(hn::Mul(term, hn::Load(d, tile_.s(r) + x)), d, ds + x);
    }
    const std::size_t chosen = Chosen(r);
    if (chosen < kKeys) ds[chosen] += dlog_prob;
  }

  // As in Differentiate, with dropout, dweights, or the row term taken from the row itself.
  HWY_NOINLINE void GeneralRow(std::size_t r, Vector<T> scale, Vector<T> shift, T rest) {
    const Lanes<T> d;
    constexpr std::size_t kLanes = LanesOf<T>();
    RowOfP(r, scale, shift, rest);
    const RowRange keys = tile_.range(r);
    const Index h = tile_.head(r), i = tile_.query(r);
    const std::size_t first = keys.FirstVector<T>(), end = keys.EndVector<T>();
    T *p = tile_.s(r), *dp = dp_ + r * kKeys;
    std::fill(scales_ + first, scales_ + end, T(1));
    if (p_.dropout.active()) {
      const RandomRow random(p_.dropout_seed, Stream::kDropout, tile_.block().b, h, i);
      DropRow(p_, random, tile_.j0(), first, end, scales_);
      for (std::size_t x = first; x < end; x += kLanes) {
        hn::Store(hn::Mul(hn::Load(d, dp + x), hn::Load(d, scales_ + x)), d, dp + x);
      }
    }
    if (up_.dweights) {
      const T* dweights = &(*up_.dweights)(tile_.block().b, h, i, tile_.j0());
      const Index stride = up_.dweights->strides[3];
      for (std::size_t x = keys.lo; x < keys.hi; ++x) {
        if (p[x] != 0) dp[x] += dweights[static_cast<Index>(x) * stride];
      }
    }
    const auto term = hn::Set(
        d, call_.row_in_tile() ? TermOfRow(r) : call_.row_term[(tile_.block().b * p_.H + h) * p_.L + i]);
    for (std::size_t x = first; x < end; x += kLanes) {
      const auto e = hn::Load(d, p + x);
      hn::Store(hn::Mul(e, hn::Add(hn::Load(d, dp + x), term)), d, dp + x);
      hn::Store(hn::Mul(e, hn::Load(d, scales_ + x)), d, p + x);
    }
  }

  // dlse - sum_x p_x dp_x
  T TermOfRow(std::size_t r) const {
    const Lanes<T> d;
    const RowRange keys = tile_.range(r);
    const T *p = tile_.s(r), *dp = dp_ + r * kKeys;
    VectorSum<T> sum;
    for (std::size_t x = keys.FirstVector<T>(); x < keys.EndVector<T>(); x += LanesOf<T>()) {
      sum[x] = hn::MulAdd(hn::Load(d, p + x), hn::Load(d, dp + x), sum[x]);
    }
    const T dlse = up_.dlse ? (*up_.dlse)(tile_.block().b, tile_.head(r), tile_.query(r)) : T(0);
    return dlse - sum.Total();
  }

  const TiledBackwardCall<T>& call_;
  const Problem<T>& p_;
  const AttentionUpstream<T>& up_;
  const ScoreTile<T>& tile_;
  T scale_;
  double middle_;  // half the exponent of the number of keys
  T* dp_;
  const std::uint8_t* forbidden_;
  Index part_ = 0;
  T* change_terms_ = nullptr;      // of one row, [n, kTileKeys]
  double* change_sums_ = nullptr;  // of this task, [group, n]
  HWY_ALIGN_MAX T scales_[kTileKeys];
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_ROW_GRADIENT_INL_H_
