// q [B,H,L,D], k [B,G,S,D] -> index [B,H,L], log_prob = s of the chosen key - lse, out [B,H,L,E]
//
// The chosen key is the first of the largest; a NaN is larger than any number. Sample takes the largest
// s_j + g_j, g_j = -log(-log u_j), which is a draw from the softmax (the Gumbel-max rule; Maddison et al.
// 2014, "A* sampling"). Where z is the largest so far, a key beats it only if -log u < exp(s - z), and as 1 -
// u <= -log u only if
//
//   1 - u < exp(s - m) exp(m - z)
//
// where exp(s - m) is at hand from the sum for lse. So a vector of keys costs its random bits, a product and
// a comparison; the keys of a row that are left, about log S, are drawn in float64 as policies/random.h has
// it.
#include "engine/kernels/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/choice.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which these need.
#include "engine/kernels/tile-inl.h"
#include "engine/policies/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// What a row has chosen so far. The scores are as they are in the tiles.
template <typename T>
struct Choice {
  T max = kMinusInfinity<T>;
  Index key = -1;
  double score = kMinusInfinity<double>;
  double best = kMinusInfinity<double>;  // noise included: as a score, not as it is in the tiles
  T bar = 0;                             // exp(best - max), a little less, in the units of UnitsBelowOne
};

template <typename T, typename Score>
class ChoiceBlock {
 public:
  ChoiceBlock(const ChoiceCall<T>& call, const Score& score, Scratch* scratch)
      : call_(call),
        p_(call.problem),
        outputs_(call.outputs),
        score_(score),
        tile_(p_, TileUse::kScores, scratch),
        sums_(scratch->Take<T>(kBlockRows * LanesOf<T>())),
        choices_(scratch->Take<Choice<T>>(kBlockRows)) {}

  void Run(const RowBlock& block) {
    tile_.SetBlock(block, score_);
    std::fill(sums_, sums_ + tile_.rows() * LanesOf<T>(), T(0));
    std::fill(choices_, choices_ + tile_.rows(), Choice<T>());
    for (Index j0 = 0; j0 < p_.S; j0 += kTileKeys) {
      if (!tile_.SetTile(j0)) continue;
      const Index n = j0 / kTileKeys;
      tile_.Compute(score_, call_.keys.Tile(block.b, block.g, n), call_.keys.Wide(block.b, block.g, n));
      for (std::size_t r = 0; r < tile_.rows(); ++r) {
        if (!tile_.range(r).empty()) AddRow(r);
      }
    }
    for (std::size_t r = 0; r < tile_.rows(); ++r) Finish(r);
  }

 private:
  // A row's part in this tile.
  HWY_INLINE void AddRow(std::size_t r) {
    const Lanes<T> d;
    const RowRange keys = tile_.range(r);
    const std::size_t first = keys.FirstVector<T>(), end = keys.EndVector<T>();
    const T* s = tile_.s(r);
    Choice<T>& choice = choices_[r];
    const auto largest = LargestOf(s, first, end);
    const bool raises = !hn::AllTrue(d, hn::Le(largest, hn::Set(d, choice.max)));
    if (raises) Raise(r, hn::GetLane(hn::MaxOfLanes(d, largest)));

    const auto shift = hn::Set(d, choice.max == kMinusInfinity<T> ? T(0) : choice.max);
    const auto scale = hn::Set(d, tile_.exponent_scale());
    auto sum = hn::Load(d, sums_ + r * LanesOf<T>());
    for (std::size_t x = first; x < end; x += LanesOf<T>()) {
      const auto e = Exp2<T>(hn::Mul(scale, hn::Sub(hn::Load(d, s + x), shift)));
      sum = hn::Add(sum, e);
      hn::Store(e, d, exponentials_ + x);
    }
    hn::Store(sum, d, sums_ + r * LanesOf<T>());

    const bool numbers = hn::AllTrue(d, hn::Eq(sum, sum));  // no NaN, no infinity
    if (p_.normalizer == NormalizerKind::kSample) {
      if (!std::isnan(choice.best)) Sample(r);
    } else if (!numbers) {
      for (std::size_t x = keys.lo; x < keys.hi; ++x) Take(&choice, x, s[x], static_cast<double>(s[x]));
    } else if (raises) {
      TakeMax(r);
    }
  }

  HWY_NOINLINE void Raise(std::size_t r, T largest) {
    const Lanes<T> d;
    Choice<T>& choice = choices_[r];
    const T old = choice.max;
    choice.max = std::max(old, largest);
    choice.bar =
        static_cast<T>(std::exp(choice.best - static_cast<double>(choice.max) * tile_.factor()) * kBar);
    if (old == kMinusInfinity<T>) return;
    Scale(hn::GetLane(Exp2<T>(hn::Set(d, (old - choice.max) * tile_.exponent_scale()))), LanesOf<T>(),
          sums_ + r * LanesOf<T>());
  }

  // From exp(best - max) to a bar: the exponentials are rounded.
  static constexpr double kBar = (1 - 0x1p-10) / kUnitsOfOne;

  HWY_INLINE bool Take(Choice<T>* choice, std::size_t x, T score, double value) const {
    if (!(value > choice->best || (std::isnan(value) && !std::isnan(choice->best)))) return false;
    choice->key = tile_.j0() + static_cast<Index>(x);
    choice->score = static_cast<double>(score);
    choice->best = value;
    return true;
  }

  // The first score that is the maximum.
  HWY_NOINLINE void TakeMax(std::size_t r) {
    const Lanes<T> d;
    const RowRange keys = tile_.range(r);
    Choice<T>& choice = choices_[r];
    for (std::size_t x = keys.FirstVector<T>(); x < keys.hi; x += LanesOf<T>()) {
      const auto found = hn::FindFirstTrue(d, hn::Eq(hn::Load(d, tile_.s(r) + x), hn::Set(d, choice.max)));
      if (found < 0) continue;
      Take(&choice, x + static_cast<std::size_t>(found), choice.max, static_cast<double>(choice.max));
      return;
    }
  }

  HWY_INLINE void Sample(std::size_t r) {
    const Lanes<T> d;
    const RowRange keys = tile_.range(r);
    const RandomRow random(p_.sample_seed, Stream::kGumbel, tile_.block().b, tile_.head(r), tile_.query(r));
    const std::size_t first = keys.FirstVector<T>(), end = keys.EndVector<T>();
    RandomVectors bits(random, tile_.j0() + static_cast<Index>(first));
    auto bar = hn::Set(d, choices_[r].bar);
    for (std::size_t x = first; x < end; x += LanesOf<T>()) {
      const auto out = hn::Ge(hn::Mul(bits.UnitsBelowOne<T>(), bar), hn::Load(d, exponentials_ + x));
      if (HWY_LIKELY(hn::AllTrue(d, out))) continue;
      Draw(r, random, x, hn::Not(out));
      bar = hn::Set(d, choices_[r].bar);
    }
  }

  // The keys of one vector that may be in the race.
  HWY_NOINLINE void Draw(std::size_t r, const RandomRow& random, std::size_t first,
                         hn::Mask<Lanes<T>> which) {
    Choice<T>& choice = choices_[r];
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(Lanes<T>(), which, bytes);
    for (std::uint32_t bits = bytes[0] + 256u * bytes[1]; bits != 0; bits &= bits - 1) {
      const std::size_t x = first + hwy::Num0BitsBelowLS1Bit_Nonzero32(bits);
      if (x < tile_.range(r).lo || x >= tile_.range(r).hi) continue;
      const Index j = tile_.j0() + static_cast<Index>(x);
      const double p = static_cast<double>(exponentials_[x]);
      if (static_cast<double>(choice.bar) * UnitsBelowOne<double>(random.Bits(j)) >= p) continue;
      const double e = random.Exponential(j);
      if (static_cast<double>(choice.bar) * kUnitsOfOne * e >= p) continue;
      const T s = tile_.s(r)[x];
      if (!Take(&choice, x, s, static_cast<double>(s) * tile_.factor() - std::log(e))) continue;
      choice.bar = static_cast<T>(p / e * kBar);
    }
  }

  // The weight of the chosen key is 1, and NaN where the scores hold one.
  void Finish(std::size_t r) {
    const Index b = tile_.block().b, g = tile_.block().g, h = tile_.head(r), i = tile_.query(r);
    const Choice<T>& choice = choices_[r];
    const bool sees = choice.key >= 0;
    const double sum = static_cast<double>(SumOf<T>(hn::Load(Lanes<T>(), sums_ + r * LanesOf<T>())));
    const double max = static_cast<double>(choice.max), log_sum = std::log(sum);
    const T lse = sees ? static_cast<T>(max * tile_.factor() + log_sum) : kMinusInfinity<T>;
    if (outputs_.lse) (*outputs_.lse)(b, h, i) = lse;
    if (outputs_.index) (*outputs_.index)(b, h, i) = choice.key;
    if (outputs_.log_prob) {
      (*outputs_.log_prob)(b, h, i) =
          sees ? static_cast<T>((choice.score - max) * tile_.factor() - log_sum) : T(0);
    }
    const T weight = std::isnan(lse) ? lse : T(1);
    const RandomRow random(p_.dropout_seed, Stream::kDropout, b, h, i);
    const bool keeps = p_.dropout.Keeps(random.Bits(choice.key));
    const T scale = keeps ? static_cast<T>(p_.dropout.scale()) : T(0);
    const T* v = sees ? RowsOf(p_.v, b, g)[choice.key] : nullptr;
    for (Index e = 0; e < p_.E; ++e) outputs_.out(b, h, i, e) = sees ? weight * scale * v[e] : T(0);
    if (!outputs_.weights) return;
    for (Index j = 0; j < p_.S; ++j) (*outputs_.weights)(b, h, i, j) = j == choice.key ? weight : T(0);
  }

  const ChoiceCall<T>& call_;
  const Problem<T>& p_;
  const AttentionOutputs<T>& outputs_;
  const Score& score_;
  ScoreTile<T> tile_;
  T* sums_;  // of exp(s - max), of each row in lanes
  Choice<T>* choices_;
  HWY_ALIGN_MAX T exponentials_[kTileKeys];  // of one row
};

template <typename T>
HWY_INLINE void ChoiceRangeOf(const ChoiceCall<T>& call, Index first, Index last) {
  Scratch scratch;
  VisitScore(call.problem, [&](const auto& score) HWY_ATTR {
    ChoiceBlock block(call, score, &scratch);
    for (Index task = first; task < last; ++task) block.Run(call.blocks[task]);
  });
}

void ChoiceRangeF32(const ChoiceCall<float>& call, Index first, Index last) {
  ChoiceRangeOf(call, first, last);
}
void ChoiceRangeF64(const ChoiceCall<double>& call, Index first, Index last) {
  ChoiceRangeOf(call, first, last);
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::engine {

HWY_EXPORT(ChoiceRangeF32);
HWY_EXPORT(ChoiceRangeF64);

template <>
void ChoiceRange(const ChoiceCall<float>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(ChoiceRangeF32)(call, first, last);
}
template <>
void ChoiceRange(const ChoiceCall<double>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(ChoiceRangeF64)(call, first, last);
}

}  // namespace regard::engine
#endif  // HWY_ONCE
