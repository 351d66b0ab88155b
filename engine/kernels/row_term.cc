#include "engine/kernels/row_term.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/row_term.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which these need.
#include "engine/kernels/tile-inl.h"
#include "engine/policies/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T, typename Score>
class RowTerm {
 public:
  RowTerm(const RowTermCall<T>& call, const Score& score, Scratch* scratch)
      : call_(call),
        p_(call.problem),
        up_(call.upstream),
        score_(score),
        tile_(p_, TileUse::kWeights, scratch),
        sum_(scratch->Take<T>(kBlockRows * LanesOf<T>())),
        product_(scratch->Take<T>(kBlockRows * LanesOf<T>())) {}

  void Run(const RowBlock& block) {
    tile_.SetBlock(block, score_);
    for (std::size_t r = 0; r < tile_.rows(); ++r) Term(r) = WithoutWeights(r);
    if (!up_.dweights) return;
    std::fill(sum_, sum_ + tile_.rows() * LanesOf<T>(), T(0));
    std::fill(product_, product_ + tile_.rows() * LanesOf<T>(), T(0));
    for (Index j0 = 0; j0 < p_.S; j0 += kTileKeys) {
      if (!tile_.SetTile(j0)) continue;
      const Index n = j0 / kTileKeys;
      tile_.Compute(score_, call_.keys.Tile(block.b, block.g, n), call_.keys.Wide(block.b, block.g, n));
      for (std::size_t r = 0; r < tile_.rows(); ++r) AddWeights(r);
    }
    for (std::size_t r = 0; r < tile_.rows(); ++r) {
      const T sum = Total(sum_, r);  // not quite 1: lse is rounded
      if (sum != 0) Term(r) -= Total(product_, r) / sum;
    }
  }

 private:
  T& Term(std::size_t r) const {
    return call_.row_term[(tile_.block().b * p_.H + tile_.head(r)) * p_.L + tile_.query(r)];
  }
  T Lse(std::size_t r) const { return up_.lse(tile_.block().b, tile_.head(r), tile_.query(r)); }
  T Total(const T* lanes, std::size_t r) const {
    return SumOf<T>(hn::Load(Lanes<T>(), lanes + r * LanesOf<T>()));
  }

  // A row that sees nothing is left out, whatever stands in its dout.
  HWY_INLINE T WithoutWeights(std::size_t r) const {
    if (Lse(r) == kMinusInfinity<T>) return T(0);
    const Index b = tile_.block().b, h = tile_.head(r), i = tile_.query(r);
    const T dlse = up_.dlse ? (*up_.dlse)(b, h, i) : T(0);
    if (!up_.dout) return dlse;
    return dlse - Dot(RowsOf(*up_.dout, b, h)[i], RowsOf(up_.out, b, h)[i], static_cast<std::size_t>(p_.E));
  }

  // sum += p_x, product += p_x dweights_x
  HWY_INLINE void AddWeights(std::size_t r) {
    const Lanes<T> d;
    const RowRange keys = tile_.range(r);
    const T lse = Lse(r);
    if (keys.empty() || lse == kMinusInfinity<T>) return;
    const T* dweights = &(*up_.dweights)(tile_.block().b, tile_.head(r), tile_.query(r), tile_.j0());
    if (const Index stride = up_.dweights->strides[3]; stride != 1) {
      for (std::size_t x = keys.FirstVector<T>(); x < keys.hi; ++x) {
        row_[x] = dweights[static_cast<Index>(x) * stride];
      }
      dweights = row_;
    }
    const auto scale = hn::Set(d, tile_.exponent_scale());
    const auto shift = hn::Set(d, static_cast<T>(static_cast<double>(lse) * kLog2E));
    T *sums = sum_ + r * LanesOf<T>(), *products = product_ + r * LanesOf<T>();
    auto sum = hn::Load(d, sums), product = hn::Load(d, products);
    for (std::size_t x = keys.FirstVector<T>(); x < keys.hi; x += LanesOf<T>()) {
      const auto p = Weight<Score>(tile_, tile_.s(r) + x, scale, shift);
      const auto term = hn::Mul(p, LoadUpTo(dweights, x, keys.hi));
      sum = hn::Add(sum, p);
      product =
          hn::Add(product, hn::IfThenElseZero(hn::Ne(p, hn::Zero(d)), term));  // p is 0 where it is masked
    }
    hn::Store(sum, d, sums);
    hn::Store(product, d, products);
  }

  const RowTermCall<T>& call_;
  const Problem<T>& p_;
  const AttentionUpstream<T>& up_;
  const Score& score_;
  ScoreTile<T> tile_;
  T *sum_, *product_;  // of each row, in lanes
  HWY_ALIGN_MAX T row_[kTileKeys];
};

template <typename T>
HWY_INLINE void RowTermRangeOf(const RowTermCall<T>& call, Index first, Index last) {
  Scratch scratch;
  VisitScore(call.problem, [&](const auto& score) HWY_ATTR {
    RowTerm block(call, score, &scratch);
    for (Index task = first; task < last; ++task) block.Run(call.blocks[task]);
  });
}

void RowTermRangeF32(const RowTermCall<float>& call, Index first, Index last) {
  RowTermRangeOf(call, first, last);
}
void RowTermRangeF64(const RowTermCall<double>& call, Index first, Index last) {
  RowTermRangeOf(call, first, last);
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::engine {

HWY_EXPORT(RowTermRangeF32);
HWY_EXPORT(RowTermRangeF64);

template <>
void RowTermRange(const RowTermCall<float>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(RowTermRangeF32)(call, first, last);
}
template <>
void RowTermRange(const RowTermCall<double>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(RowTermRangeF64)(call, first, last);
}

}  // namespace regard::engine
#endif  // HWY_ONCE
