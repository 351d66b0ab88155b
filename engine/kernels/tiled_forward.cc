// Forward: q [B,H,L,D], k [B,G,S,D], v [B,G,S,E] -> out [B,H,L,E]
//
//   out_i = sum_j exp(s_ij - m_i) drop_ij v_j / sum_j exp(s_ij - m_i)
//
// in one pass over the keys (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et
// al. 2022, "FlashAttention"). A tile's scores are a product held in the first-level cache; they become
// exponentials of 2 in place, and are multiplied by the values.
//
// m_i need not be the maximum, only near it: it is raised, and what was summed multiplied by exp(old - new),
// only where a score is above it by more than 2^kSlack, which is rare after the first tile.
#include "engine/kernels/tiled_forward.h"

#include <algorithm>
#include <cmath>
#include <optional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/tiled_forward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which these need.
#include "engine/kernels/small-inl.h"
#include "engine/kernels/tile-inl.h"
#include "engine/policies/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

inline constexpr double kSlack = 8;

template <typename T, typename Score>
class TiledForward {
 public:
  TiledForward(const TiledForwardCall<T>& call, const Score& score, Scratch* scratch)
      : call_(call),
        p_(call.problem),
        outputs_(call.outputs),
        score_(score),
        tile_(p_, TileUse::kWeights, scratch),
        scale_(tile_.exponent_scale()),
        narrow_(HasNarrowValues(p_)),
        width_(narrow_ ? static_cast<std::size_t>(p_.E) * LanesOf<T>()
                       : static_cast<std::size_t>(Padded(p_.E))),
        max_(scratch->Take<T>(kBlockRows)),
        sum_(scratch->Take<T>(kBlockRows * LanesOf<T>())),
        acc_(scratch->Take<T>(kBlockRows * width_)) {
    if (Score::kCompact && (call.pack_here || call.values.spoilt != nullptr)) tile_.KeepRaw(scratch);
    nearest_first_ = p_.may_be_negligible() && call.finite;
    if (nearest_first_) tile_.LeaveOutNegligible(max_, scratch);
    if (!call.pack_here) return;
    const auto D = static_cast<std::size_t>(p_.D), E = static_cast<std::size_t>(p_.E);
    here_.key_panels = scratch->Take<T>(kKeys * D);
    if constexpr (!Score::kProduct) here_.wide = scratch->Take<std::uint8_t>(kKeys);
    if (narrow_) here_.value_panels = scratch->Take<T>(kKeys * E);
    if (!narrow_) here_.value_rows = scratch->Take<T>(kKeys * width_);
    if (p_.leaves_out()) here_.spoilt = scratch->Take<std::uint8_t>(kKeys);
  }

  void Run(Index task) {
    const Index part = task % call_.parts;
    Start(call_.blocks[task / call_.parts]);
    const Index tiles = CeilDiv(p_.S, kTileKeys), per_part = CeilDiv(tiles, call_.parts);
    const Index first = part * per_part, count = std::min(tiles - first, per_part);
    // Where both are sorted, a query's nearest keys are as far along as it is; once they are known, the
    // weights of the rest are seen to be 0.
    const Index nearest = nearest_first_ ? tile_.query(0) * count / p_.L : 0;
    for (Index n = 0; n < count; ++n) {
      if (!tile_.SetTile((first + (nearest + n) % count) * kTileKeys)) continue;
      SetOperands();
      // With few dimensions there is little to compute: a group's scores are used before they leave the
      // first-level cache.
      const std::size_t step = p_.D <= 16 ? kRows : tile_.rows();
      for (std::size_t begin = 0; begin < tile_.rows(); begin += step) {
        const std::size_t end = std::min(begin + step, tile_.rows());
        ComputeTile(begin, end);
        for (std::size_t r = begin; r < end; ++r) {
          Exponentials(r);
          if (narrow_ && call_.shifts == nullptr) AddNarrowValues(r);
        }
      }
      if (call_.shifts != nullptr) continue;
      if (!narrow_) AddValues();
      if (at_.spoilt != nullptr) AddSpoiltValues();
    }
    if (call_.parts == 1) return Finish();
    T* state = call_.states + task * call_.state_size();
    state = std::copy(max_, max_ + tile_.rows(), state);
    state = std::copy(sum_, sum_ + tile_.rows() * LanesOf<T>(), state);
    std::copy(acc_, acc_ + tile_.rows() * width_, state);
  }

  void Merge(Index block) {
    Start(call_.blocks[block]);
    const auto rows = tile_.rows();
    for (Index part = 0; part < call_.parts; ++part) {
      const T* max = call_.states + (block * call_.parts + part) * call_.state_size();
      const T *sum = max + rows, *acc = sum + rows * LanesOf<T>();
      for (std::size_t r = 0; r < rows; ++r) {
        if (max[r] == kMinusInfinity<T> && sum[r * LanesOf<T>()] == 0) continue;  // saw nothing
        if (max[r] > max_[r]) Raise(r, max[r]);
        const T shift = max_[r] == kMinusInfinity<T> ? T(0) : max_[r];
        const T own = max[r] == kMinusInfinity<T> ? T(0) : max[r];
        const T shrink = hn::GetLane(Exp2<T>(hn::Set(Lanes<T>(), own - shift)));
        AddScaled(shrink, sum + r * LanesOf<T>(), LanesOf<T>(), sum_ + r * LanesOf<T>());
        AddScaled(shrink, acc + r * width_, width_, acc_ + r * width_);
      }
    }
    Finish();
  }

 private:
  static constexpr std::size_t kKeys = ScoreTile<T>::kStride;

  // A tile's keys and values as the loops read them.
  struct Operands {
    T* key_panels = nullptr;
    std::uint8_t* wide = nullptr;
    const T* values = nullptr;  // rows, value_stride apart
    Index value_stride = 0;
    T* value_rows = nullptr;
    T* value_panels = nullptr;
    std::uint8_t* spoilt = nullptr;
  };

  void Start(const RowBlock& block) {
    tile_.SetBlock(block, score_);
    std::fill(max_, max_ + tile_.rows(), kMinusInfinity<T>);
    std::fill(sum_, sum_ + tile_.rows() * LanesOf<T>(), T(0));
    std::fill(acc_, acc_ + tile_.rows() * width_, T(0));
  }

  void Finish() {
    if (call_.shifts != nullptr) return FinishSums();
    for (std::size_t r = 0; r < tile_.rows(); ++r) Finish(r);
    if (outputs_.weights) WriteWeights();
  }

  void FinishSums() {
    for (std::size_t r = 0; r < tile_.rows(); ++r) {
      const Index at = (tile_.block().b * p_.H + tile_.head(r)) * p_.L + tile_.query(r);
      const T sum = SumOf<T>(hn::Load(Lanes<T>(), sum_ + r * LanesOf<T>()));
      call_.shifts[at] = max_[r] == kMinusInfinity<T> ? T(0) : max_[r];
      call_.inverse_sums[at] = sum == 0 ? T(0) : T(1) / sum;
    }
  }

  static HWY_INLINE void CopyStrided(const T* from, std::size_t size, Index stride, T* to) {
    if (stride == 1) {
      std::copy(from, from + size, to);
    } else {
      for (std::size_t at = 0; at < size; ++at) to[static_cast<Index>(at) * stride] = from[at];
    }
  }

  static HWY_INLINE void AddScaled(T factor, const T* from, std::size_t size, T* to) {
    const Lanes<T> d;
    const auto f = hn::Set(d, factor);
    for (std::size_t at = 0; at < size; at += LanesOf<T>()) {
      hn::Store(hn::MulAdd(f, hn::LoadU(d, from + at), hn::Load(d, to + at)), d, to + at);
    }
  }

  HWY_INLINE void SetOperands() {
    if (call_.pack_here) return PackTileHere();
    const Index b = tile_.block().b, g = tile_.block().g, n = tile_.j0() / kTileKeys;
    at_ = Operands();
    at_.key_panels = call_.keys.Tile(b, g, n);
    at_.wide = call_.keys.Wide(b, g, n);
    if (call_.shifts != nullptr) return;  // no values
    if (narrow_) at_.value_panels = call_.value_panels.Tile(b, g, n);
    if (!narrow_) at_.values = call_.values.Row(b, g, tile_.j0());
    at_.value_stride = call_.values.stride;
    if (call_.values.spoilt != nullptr) at_.spoilt = call_.values.spoilt + (b * p_.G + g) * p_.S + tile_.j0();
  }

  void PackTileHere() {
    const Index b = tile_.block().b, g = tile_.block().g, j0 = tile_.j0();
    const auto count = static_cast<std::size_t>(std::min(kTileKeys, p_.S - j0));
    const auto D = static_cast<std::size_t>(p_.D), E = static_cast<std::size_t>(p_.E);
    const Rows<T> k = RowsOf(p_.k, b, g), v = RowsOf(p_.v, b, g);
    at_ = here_;
    if (HasFewRows()) {
      FetchRows(k[j0], k.stride, count, D);
    } else {
      PackKeys(k[j0], k.stride, count, D, tile_.form(), at_.key_panels, at_.wide);
    }
    if (call_.shifts != nullptr) return;  // no values
    if (at_.spoilt != nullptr) {
      bool any = false;
      for (std::size_t x = 0; x < count; ++x) {
        at_.spoilt[x] = static_cast<std::uint8_t>(!IsFinite(v[j0 + static_cast<Index>(x)], E));
        any = any || at_.spoilt[x] != 0;
      }
      if (!any) at_.spoilt = nullptr;
    }
    if (narrow_) {
      PackPanels(v[j0], v.stride, count, E, at_.value_panels);
      if (at_.spoilt != nullptr) Clean(at_.value_panels, PanelsSize<T>(count, E));
      return;
    }
    at_.values = v[j0];
    at_.value_stride = v.stride;
    FetchRows(v[j0], v.stride, count, E);
    if (E == width_ && at_.spoilt == nullptr) return;
    for (std::size_t x = 0; x < count; ++x) {
      CopyRow(v[j0 + static_cast<Index>(x)], E, width_, at_.value_rows + x * width_);
    }
    if (at_.spoilt != nullptr) Clean(at_.value_rows, count * width_);
    at_.values = at_.value_rows;
    at_.value_stride = static_cast<Index>(width_);
  }

  bool HasFewRows() const { return Score::kProduct && call_.pack_here && tile_.rows() <= 2; }

  HWY_INLINE void ComputeTile(std::size_t begin, std::size_t end) {
    if constexpr (Score::kProduct) {
      if (HasFewRows()) {
        const Rows<T> k = RowsOf(p_.k, tile_.block().b, tile_.block().g);
        return tile_.ComputeUnpacked(score_, k[tile_.j0()], k.stride);
      }
    }
    tile_.ComputeRows(score_, at_.key_panels, at_.wide, begin, end);
  }

  // From scores to p = exp(s - m), 0 where the rows of a group see a key that this one does not.
  HWY_INLINE void Exponentials(std::size_t r) {
    const Lanes<T> d;
    constexpr std::size_t kLanes = LanesOf<T>();
    const RowRange keys = tile_.range(r), group = tile_.group(r);
    T* s = tile_.s(r);
    if (keys.empty()) {
      if (!group.empty()) std::fill(s + group.lo, s + group.hi, T(0));
      return;
    }
    const std::size_t first = keys.FirstVector<T>(), end = keys.EndVector<T>();
    const auto scale = hn::Set(d, scale_);
    if (tile_.weighs()) {
      max_[r] = T(0);
    } else if (!(Score::kNeverPositive && tile_.plain() && max_[r] >= T(-kSlack))) {
      // Scores that are never above 0 need no look when the shift is near 0.
      const auto largest = hn::Mul(LargestOf(s, first, end), scale);
      if (!hn::AllTrue(d, hn::Le(largest, hn::Set(d, max_[r] + T(kSlack))))) {
        Raise(r, hn::GetLane(hn::MaxOfLanes(d, largest)));
      }
    }
    const auto shift = hn::Set(d, max_[r] == kMinusInfinity<T> ? T(0) : max_[r]);
    auto sum = hn::Load(d, sum_ + r * kLanes);
    for (std::size_t x = first; x < end; x += kLanes) {
      const auto e = Weight<Score>(tile_, s + x, scale, shift);
      sum = hn::Add(sum, e);
      if (!tile_.weighs()) hn::Store(e, d, s + x);
    }
    hn::Store(sum, d, sum_ + r * kLanes);
    if (group.lo < first) std::fill(s + group.lo, s + first, T(0));
    if (end < group.hi) std::fill(s + end, s + group.hi, T(0));
    if (p_.dropout.active()) Drop(r);
  }

  HWY_NOINLINE void Raise(std::size_t r, T largest) {
    const Lanes<T> d;
    const T old = max_[r];
    max_[r] = std::max(old, largest);
    if (old == kMinusInfinity<T>) return;
    const T shrink = hn::GetLane(Exp2<T>(hn::Set(d, old - max_[r])));
    Scale(shrink, LanesOf<T>(), sum_ + r * LanesOf<T>());
    Scale(shrink, width_, acc_ + r * width_);
  }

  HWY_INLINE void Drop(std::size_t r) {
    const RowRange keys = tile_.range(r);
    const RandomRow random(p_.dropout_seed, Stream::kDropout, tile_.block().b, tile_.head(r), tile_.query(r));
    DropRow(p_, random, tile_.j0(), keys.FirstVector<T>(), keys.EndVector<T>(), tile_.s(r));
  }

  // acc [E, lanes] of a row += p [keys] v [keys, E], a key to a lane
  HWY_INLINE void AddNarrowValues(std::size_t r) {
    const Lanes<T> d;
    const auto E = static_cast<std::size_t>(p_.E);
    const RowRange keys = tile_.range(r);
    if (keys.empty()) return;
    const T* p = tile_.s(r);
    const std::size_t end = keys.EndVector<T>();
    for (std::size_t e = 0; e < E; ++e) {
      T* acc = acc_ + r * width_ + e * LanesOf<T>();
      auto sum = hn::Load(d, acc);
      for (std::size_t x = keys.FirstVector<T>(); x < end;) {
        const T* v = at_.value_panels + PanelOffset<T>(x, E) + e * kPanel<T>;
        const std::size_t stop = std::min(end, (x / kPanel<T> + 1) * kPanel<T>);
        for (; x < stop; x += LanesOf<T>(), v += LanesOf<T>()) {
          sum = hn::MulAdd(hn::Load(d, p + x), hn::Load(d, v), sum);
        }
      }
      hn::Store(sum, d, acc);
    }
  }

  // acc [rows, E] += p [rows, keys] v [keys, E]
  HWY_INLINE void AddValues() {
    constexpr std::size_t kStride = ScoreTile<T>::kStride;
    const Index v_stride = at_.value_stride;
    const T* v = at_.values;
    for (std::size_t e = 0; e < width_; e += kPanel<T>) {
      const std::size_t vectors = std::min(kPanelVectors, (width_ - e) / LanesOf<T>());
      for (std::size_t r = 0; r < tile_.rows(); r += kRows) {
        const RowRange keys = tile_.group(r);
        if (keys.empty()) continue;
        Multiply<false>(
            tile_.group_rows(r), vectors,
            BlockProduct<T>{tile_.s(r) + keys.lo, kStride, v + static_cast<Index>(keys.lo) * v_stride + e,
                            static_cast<std::size_t>(v_stride), keys.hi - keys.lo, acc_ + r * width_ + e,
                            width_, true});
      }
    }
  }

  // What the values that are NaN or infinite do to the rows that see them.
  HWY_NOINLINE void AddSpoiltValues() {
    const RowBlock& block = tile_.block();
    const Rows<T> v = RowsOf(p_.v, block.b, block.g);
    const Index j0 = tile_.j0(), j1 = std::min(j0 + kTileKeys, p_.S);
    for (Index j = j0; j < j1; ++j) {
      const auto x = static_cast<std::size_t>(j - j0);
      if (!at_.spoilt[x]) continue;
      for (std::size_t r = 0; r < tile_.rows(); ++r) {
        if (!tile_.Allows(r, x)) continue;
        AddSpoilt(tile_.s(r)[x], v[j], static_cast<std::size_t>(p_.E), narrow_ ? LanesOf<T>() : 1,
                  acc_ + r * width_);
      }
    }
  }

  void Finish(std::size_t r) {
    const Index b = tile_.block().b, h = tile_.head(r), i = tile_.query(r);
    const T sum = SumOf<T>(hn::Load(Lanes<T>(), sum_ + r * LanesOf<T>()));
    const bool sees = sum != 0;  // NaN sees
    const T* acc = acc_ + r * width_;
    T* out = outputs_.out.data + b * outputs_.out.strides[0] + h * outputs_.out.strides[1] +
             i * outputs_.out.strides[2];
    const Index stride = outputs_.out.strides[3];
    if (narrow_) {
      for (Index e = 0; e < p_.E; ++e) {
        const T value = SumOf<T>(hn::Load(Lanes<T>(), acc + e * static_cast<Index>(LanesOf<T>())));
        out[e * stride] = sees ? value / sum : T(0);
      }
    } else {
      const Lanes<T> d;
      const auto divisor = hn::Set(d, sees ? sum : T(1));
      T* row = acc_ + r * width_;
      for (std::size_t e = 0; e < width_; e += LanesOf<T>()) {
        hn::Store(hn::Div(hn::Load(d, row + e), divisor), d, row + e);
      }
      if (!sees) std::fill(row, row + width_, T(0));
      CopyStrided(row, static_cast<std::size_t>(p_.E), stride, out);
    }
    if (outputs_.lse) {
      (*outputs_.lse)(b, h, i) =
          sees ? static_cast<T>(static_cast<double>(max_[r]) * kLn2 + std::log(static_cast<double>(sum)))
               : kMinusInfinity<T>;
    }
    sum_[r * LanesOf<T>()] = sum;
  }

  // One more pass over the keys, now that the rows' sums are known.
  void WriteWeights() {
    const Lanes<T> d;
    const auto& weights = *outputs_.weights;
    const Index stride = weights.strides[3];
    const auto scale = hn::Set(d, scale_);
    for (Index j0 = 0; j0 < p_.S; j0 += kTileKeys) {
      const bool any = tile_.SetTile(j0);
      if (any) SetOperands(), ComputeTile(0, tile_.rows());
      const Index n = std::min(kTileKeys, p_.S - j0);
      for (std::size_t r = 0; r < tile_.rows(); ++r) {
        T* to = &weights(tile_.block().b, tile_.head(r), tile_.query(r), j0);
        const RowRange keys = any ? tile_.range(r) : RowRange();
        const T sum = sum_[r * LanesOf<T>()];
        const auto shift = hn::Set(d, max_[r] == kMinusInfinity<T> ? T(0) : max_[r]);
        const auto divisor = hn::Set(d, sum == 0 ? T(1) : sum), factor = hn::Div(hn::Set(d, T(1)), divisor);
        T* s = tile_.s(r);
        if (std::isnan(sum)) {
          for (std::size_t x = keys.lo; x < keys.hi; ++x) s[x] = tile_.Allows(r, x) ? sum : T(0);
        }
        for (std::size_t x = keys.FirstVector<T>(); sum == sum && !keys.empty() && x < keys.EndVector<T>();
             x += LanesOf<T>()) {
          const auto weight = Weight<Score>(tile_, s + x, scale, shift);
          // K times 1 / K need not be 1.
          hn::Store(Score::kCompact ? hn::Div(weight, divisor) : hn::Mul(factor, weight), d, s + x);
        }
        for (Index x = 0; x < n; ++x) {
          const auto at = static_cast<std::size_t>(x);
          to[x * stride] = at >= keys.lo && at < keys.hi ? s[at] : T(0);
        }
      }
    }
  }

  const TiledForwardCall<T>& call_;
  const Problem<T>& p_;
  const AttentionOutputs<T>& outputs_;
  const Score& score_;
  ScoreTile<T> tile_;
  T scale_;
  bool narrow_;
  bool nearest_first_;
  std::size_t width_;
  Operands here_;  // the memory of PackTileHere
  Operands at_;    // of the tile at hand
  T* max_;         // m, as an exponent of 2
  T* sum_;         // of exp(s - m), in lanes
  T* acc_;
};

template <typename T>
HWY_INLINE void TiledForwardRangeOf(const TiledForwardCall<T>& call, Index first, Index last) {
  Scratch scratch;
  std::optional<SmallForward<T>> small;
  if (call.small) small.emplace(call, &scratch);
  VisitScore(call.problem, [&](const auto& score) HWY_ATTR {
    TiledForward block(call, score, &scratch);
    for (Index task = first; task < last; ++task) {
      if (!small || !small->Run(task)) block.Run(task);
    }
  });
}

template <typename T>
HWY_INLINE void MergeForwardRangeOf(const TiledForwardCall<T>& call, Index first, Index last) {
  Scratch scratch;
  VisitScore(call.problem, [&](const auto& score) HWY_ATTR {
    TiledForward block(call, score, &scratch);
    for (Index n = first; n < last; ++n) block.Merge(n);
  });
}

void MergeForwardRangeF32(const TiledForwardCall<float>& call, Index first, Index last) {
  MergeForwardRangeOf(call, first, last);
}
void MergeForwardRangeF64(const TiledForwardCall<double>& call, Index first, Index last) {
  MergeForwardRangeOf(call, first, last);
}

void TiledForwardRangeF32(const TiledForwardCall<float>& call, Index first, Index last) {
  TiledForwardRangeOf(call, first, last);
}
void TiledForwardRangeF64(const TiledForwardCall<double>& call, Index first, Index last) {
  TiledForwardRangeOf(call, first, last);
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::engine {

HWY_EXPORT(TiledForwardRangeF32);
HWY_EXPORT(TiledForwardRangeF64);
HWY_EXPORT(MergeForwardRangeF32);
HWY_EXPORT(MergeForwardRangeF64);

template <>
void MergeForwardRange(const TiledForwardCall<float>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(MergeForwardRangeF32)(call, first, last);
}
template <>
void MergeForwardRange(const TiledForwardCall<double>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(MergeForwardRangeF64)(call, first, last);
}

template <>
void TiledForwardRange(const TiledForwardCall<float>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(TiledForwardRangeF32)(call, first, last);
}
template <>
void TiledForwardRange(const TiledForwardCall<double>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(TiledForwardRangeF64)(call, first, last);
}

}  // namespace regard::engine
#endif  // HWY_ONCE
