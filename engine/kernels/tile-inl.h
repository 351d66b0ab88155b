// The scores of a block of queries against a tile of keys: s [rows, kTileKeys].
#if defined(REGARD_ENGINE_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_TILE_INL_H_
#undef REGARD_ENGINE_KERNELS_TILE_INL_H_
#else
#define REGARD_ENGINE_KERNELS_TILE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "engine/base/memory.h"
#include "engine/kernels/boxes-inl.h"
#include "engine/kernels/exp-inl.h"
#include "engine/kernels/pack-inl.h"
#include "engine/kernels/pack.h"
#include "engine/kernels/product-inl.h"
#include "engine/kernels/random-inl.h"
#include "engine/kernels/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

template <typename T>
inline constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

// The largest of whole vectors first <= x < end, in lanes; four at a time, since each waits for the one
// before.
template <typename T>
HWY_INLINE Vector<T> LargestOf(const T* s, std::size_t first, std::size_t end) {
  const Lanes<T> d;
  constexpr std::size_t kLanes = LanesOf<T>();
  auto m0 = hn::Set(d, kMinusInfinity<T>), m1 = m0, m2 = m0, m3 = m0;
  std::size_t x = first;
  for (; x + 4 * kLanes <= end; x += 4 * kLanes) {
    m0 = hn::Max(m0, hn::Load(d, s + x));
    m1 = hn::Max(m1, hn::Load(d, s + x + kLanes));
    m2 = hn::Max(m2, hn::Load(d, s + x + 2 * kLanes));
    m3 = hn::Max(m3, hn::Load(d, s + x + 3 * kLanes));
  }
  for (; x < end; x += kLanes) m0 = hn::Max(m0, hn::Load(d, s + x));
  return hn::Max(hn::Max(m0, m1), hn::Max(m2, m3));
}

// A row's allowed keys lie in lo <= x < hi, x counted from the tile's first key.
struct RowRange {
  std::size_t lo = 0, hi = 0;

  bool empty() const { return lo >= hi; }
  template <typename T>
  std::size_t FirstVector() const {
    return lo / LanesOf<T>() * LanesOf<T>();
  }
  template <typename T>
  std::size_t EndVector() const {
    return (hi + LanesOf<T>() - 1) / LanesOf<T>() * LanesOf<T>();
  }
};

// What a tile is computed for. With kWeights the scores of a compact kernel, where nothing is added to them,
// are left as exp(s) = K, see `weighs`. kGradients: the same, and Compute also leaves what turns a gradient
// by the score into one by the raw score, where the two differ by more than a sum.
enum class TileUse { kScores, kWeights, kGradients };

template <typename T>
class ScoreTile {
 public:
  static constexpr std::size_t kStride = static_cast<std::size_t>(kTileKeys);

  ScoreTile(const Problem<T>& problem, TileUse use, Scratch* scratch)
      : p_(problem),
        form_(KeyFormOf(problem)),
        D_(static_cast<std::size_t>(p_.D)),
        q_stride_(static_cast<std::size_t>(Padded(p_.D))),
        plain_(p_.plain()),
        weighs_(p_.score == ScoreKind::kCompact && !p_.adjusted() && use != TileUse::kScores),
        nothing_(weighs_ ? T(0) : kMinusInfinity<T>),
        q_(scratch->Take<T>(kBlockRows * q_stride_)),
        s_(scratch->Take<T>(kBlockRows * kStride)),
        ranges_(scratch->Take<RowRange>(kBlockRows)),
        groups_(scratch->Take<RowRange>(kBlockRows / kRows + 1)),
        allowed_(scratch->Take<std::uint8_t>(kStride)),
        wide_rows_(scratch->Take<std::uint8_t>(kBlockRows)) {
    const bool compact = p_.score == ScoreKind::kCompact;
    if (compact && p_.D <= p_.kBoxDimensions) boxes_.emplace(kBlockRows / kRows, D_, scratch);
    const bool with_slope = use == TileUse::kGradients;
    if (with_slope && (p_.softcap || compact)) slope_ = scratch->Take<T>(kBlockRows * kStride);
    if ((compact && p_.adjusted()) || (with_slope && p_.score == ScoreKind::kCosine)) KeepRaw(scratch);
    if (with_slope && p_.change != nullptr) unchanged_ = scratch->Take<T>(kBlockRows * kStride);
  }

  // From now on Compute leaves out the rows of a group whose weights are all 0: shifts [rows] are exponents
  // of 2 that scores are far below then, and all that is multiplied by weights has to be finite. For a
  // Gaussian that may be negligible.
  void LeaveOutNegligible(const T* shifts, Scratch* scratch) {
    shifts_ = shifts;
    boxes_.emplace(kBlockRows / kRows, D_, scratch);
  }

  // For Allows of a compact kernel, where it is asked when s was written to.
  void KeepRaw(Scratch* scratch) { raw_ = scratch->Take<T>(kBlockRows * kStride); }

  // What the numbers in the tile are multiplied by to be scores, and to be exponents of 2.
  double factor() const {
    return plain_ && p_.score == ScoreKind::kDot ? static_cast<double>(p_.scale) : 1.0;
  }
  T exponent_scale() const { return static_cast<T>(factor() * kLog2E); }
  // Scores are the raw ones, but for a factor.
  bool plain() const { return plain_; }
  // The tile holds exp(s) in place of scores s.
  bool weighs() const { return weighs_; }
  const KeyForm<T>& form() const { return form_; }
  const RowBlock& block() const { return block_; }
  std::size_t rows() const { return static_cast<std::size_t>(block_.rows()); }
  T* s(std::size_t row) const { return s_ + row * kStride; }
  // By a softcap and a compact kernel. Null: 1 everywhere.
  const T* slope(std::size_t row) const { return slope_ == nullptr ? nullptr : slope_ + row * kStride; }
  // The raw scores; for a cosine, and for a compact kernel (its exp, where the tile weighs).
  const T* raw(std::size_t row) const { return (raw_ == nullptr ? s_ : raw_) + row * kStride; }
  // The scores before the caller's change.
  const T* unchanged(std::size_t row) const { return unchanged_ + row * kStride; }
  PairRow pairs(std::size_t row) const {
    const RowRange& keys = range(row);
    return {block_.b, head(row), query(row), j0_ + static_cast<Index>(keys.lo),
            static_cast<Index>(keys.hi - keys.lo)};
  }
  // The block's queries, [rows, q_stride], 0 beyond D.
  const T* q(std::size_t row) const { return q_ + row * q_stride_; }
  std::size_t q_stride() const { return q_stride_; }
  const RowRange& range(std::size_t row) const { return ranges_[row]; }
  // All ranges of the kRows rows from `row` on.
  const RowRange& group(std::size_t row) const { return groups_[row / kRows]; }
  std::size_t group_rows(std::size_t row) const { return std::min(kRows, rows() - row); }
  Index j0() const { return j0_; }
  Index head(std::size_t row) const {
    return block_.heads == 1 ? block_.h0 : block_.h0 + static_cast<Index>(row) / block_.queries();
  }
  Index query(std::size_t row) const {
    return block_.i0 +
           (block_.heads == 1 ? static_cast<Index>(row) : static_cast<Index>(row) % block_.queries());
  }

  template <typename Score>
  HWY_INLINE void SetBlock(const RowBlock& block, const Score&) {
    block_ = block;
    any_wide_row_ = false;
    for (std::size_t r = 0; r < rows(); ++r) {
      const T* from = OwnQuery(r);
      T* to = q_ + r * q_stride_;
      CopyRow(from, D_, q_stride_, to);
      if constexpr (!Score::kProduct) {
        wide_rows_[r] = static_cast<std::uint8_t>(IsWide(from, D_, form_.widest));
        if (wide_rows_[r]) std::fill(to, to + D_, T(0)), any_wide_row_ = true;
        if (form_.exponentials) Exponentiate(to, q_stride_);
      }
    }
    for (std::size_t r = 0; Score::kBoxed && boxes_ && r < rows(); r += kRows) {
      boxes_->SetQueries(r / kRows, q(r), q_stride_, group_rows(r));
    }
  }

  // The query of a row, where the caller has it.
  const T* OwnQuery(std::size_t r) const { return RowsOf(p_.q, block_.b, head(r))[query(r)]; }
  // The parameter of the score for the block's rows, [D].
  const T* parameter() const { return p_.parameter.data == nullptr ? nullptr : &p_.parameter(block_.h0, 0); }
  // Whether a query of the block or a key of the tile that was computed is wide: see KeyForm.
  bool any_wide() const { return any_wide_row_ || any_wide_key_; }
  bool IsWidePair(std::size_t r, std::size_t x) const { return wide_rows_[r] || wide_keys_[x]; }

  // Whether the pair of a row and a key of this tile exists, once the tile is computed.
  bool Allows(std::size_t r, std::size_t x) const {
    return MaskAllows(r, x) && !(p_.score == ScoreKind::kCompact && raw(r)[x] == nothing_);
  }

  bool MaskAllows(std::size_t r, std::size_t x) const {
    if (x < range(r).lo || x >= range(r).hi) return false;
    std::uint8_t allowed = 1;
    const Index j = j0_ + static_cast<Index>(x);
    if (pairwise_) p_.mask->TakeAway(block_.b, head(r), query(r), j, j + 1, &allowed);
    return allowed != 0;
  }

  // Keys from j0 on. False: the mask allows no pair.
  bool SetTile(Index j0) {
    j0_ = j0;
    const Index j1 = std::min(j0 + kTileKeys, p_.S);
    bool any = false;
    std::size_t r = 0;
    pairwise_ = false;
    for (Index h = block_.h0; h < block_.h0 + block_.heads; ++h) {
      TileClass c = TileClass::kFull;
      if (p_.mask->pairwise()) c = p_.mask->Classify(Tile{block_.b, h, block_.i0, block_.i1, j0, j1});
      pairwise_ = pairwise_ || c == TileClass::kPartial;
      for (Index i = block_.i0; i < block_.i1; ++i, ++r) {
        MaskRule::Range keys{j0, j1};
        if (!p_.mask->none()) {
          const MaskRule::Range allowed = p_.mask->KeysInRange(block_.b, i);
          keys = {std::max(j0, allowed.begin), std::min(j1, allowed.end)};
        }
        if (c == TileClass::kEmpty || keys.begin >= keys.end) keys = {j0, j0};
        ranges_[r] = {static_cast<std::size_t>(keys.begin - j0), static_cast<std::size_t>(keys.end - j0)};
        any = any || !ranges_[r].empty();
      }
    }
    if (any) SetGroups(0, rows());
    return any;
  }

  // Whether no row has a key left.
  bool empty() const {
    return std::all_of(ranges_, ranges_ + rows(), [](const RowRange& keys) { return keys.empty(); });
  }

  // The scores, -inf where the mask forbids a pair; in whole vectors around each row's range. `panel` is the
  // first of the tile's panels of keys, wide_keys as in Panels.
  template <typename Score>
  HWY_INLINE void Compute(const Score& score, const T* panel, const std::uint8_t* wide_keys) {
    ComputeRows(score, panel, wide_keys, 0, rows());
  }

  // The same from the tile's keys as they lie, of a score that is a product: where a block has one row or
  // two, packing would cost more than it saves.
  template <typename Score>
  HWY_INLINE void ComputeUnpacked(const Score& score, const T* keys, Index stride) {
    static_assert(Score::kProduct);
    for (std::size_t r = 0; r < rows(); ++r) {
      const RowRange own = range(r);
      if (own.empty()) continue;
      std::fill(s(r) + own.FirstVector<T>(), s(r) + own.lo, T(0));
      std::fill(s(r) + own.hi, s(r) + own.EndVector<T>(), T(0));
      for (std::size_t x = own.lo; x < own.hi; ++x) {
        s(r)[x] = Dot(q(r), keys + static_cast<Index>(x) * stride, D_);
      }
      FinishRow(score, r);
    }
  }

  // The same for rows begin <= r < end, whole groups.
  template <typename Score>
  HWY_INLINE void ComputeRows(const Score& score, const T* panel, const std::uint8_t* wide_keys,
                              std::size_t begin, std::size_t end) {
    constexpr std::size_t kWidth = kPanel<T>;
    if constexpr (!Score::kProduct) {
      if (begin == 0) {
        wide_keys_ = wide_keys;
        any_wide_key_ = std::memchr(wide_keys, 1, kStride) != nullptr;
        if (Score::kBoxed && boxes_)
          boxes_->SetKeys(panel, static_cast<std::size_t>(std::min(kTileKeys, p_.S - j0_)));
      }
    }
    if (Score::kBoxed && boxes_ && !any_wide()) LeaveOutApart<Score::kCompact>(begin, end);
    for (std::size_t x = 0; x < kStride; x += kWidth, panel += kWidth * D_) {
      for (std::size_t r = begin; r < end; r += kRows) {
        const RowRange& g = group(r);
        if (g.hi <= x || g.lo >= x + kWidth) continue;
        const std::size_t vectors = std::min(kPanelVectors, (g.hi - x + LanesOf<T>() - 1) / LanesOf<T>());
        if constexpr (Score::kProduct) {
          score.Block(group_rows(r), vectors, q(r), q_stride_, panel, D_, s(r) + x, kStride);
        } else {
          ComputeTerms(score, group_rows(r), vectors, q(r), panel, s(r) + x);
        }
      }
    }
    if constexpr (!Score::kProduct) {
      if (any_wide()) ComputeWidePairs(score, begin, end);
    }
    for (std::size_t r = begin; r < end; ++r) {
      if (!range(r).empty()) FinishRow(score, r);
    }
    if constexpr (Score::kCompact) SetGroups(begin, end);
  }

 private:
  // Groups of rows that are so far from all keys that every pair is outside, or every weight of a Gaussian is
  // 0, see nothing.
  template <bool kCompact>
  HWY_NOINLINE void LeaveOutApart(std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; r += kRows) {
      const T u2 = boxes_->LeastSquare(r / kRows, parameter());
      if (kCompact ? !(u2 > T(1.01)) : !IsNegligible(T(-0.495) * u2, r)) continue;
      std::fill(ranges_ + r, ranges_ + r + group_rows(r), RowRange());
      groups_[r / kRows] = RowRange();
    }
  }

  // Whether scores of at most `largest` are weights of 0 in all rows of the group from r on. Shifts are near
  // lse, by less than 30, and weights below 2^-100 (float64: 2^-1443) are 0.
  bool IsNegligible(T largest, std::size_t r) const {
    constexpr T kFarBelow = sizeof(T) == 4 ? T(-140) : T(-1500);
    for (std::size_t m = r; m < r + group_rows(r); ++m) {
      if (!range(m).empty() && !(largest * static_cast<T>(kLog2E) - shifts_[m] < kFarBelow)) return false;
    }
    return true;
  }

  // Rows begin <= r < end, whole groups.
  void SetGroups(std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; r += kRows) {
      RowRange all{kStride, 0};
      for (std::size_t m = r; m < r + group_rows(r); ++m) {
        if (ranges_[m].empty()) continue;
        all.lo = std::min(all.lo, ranges_[m].lo);
        all.hi = std::max(all.hi, ranges_[m].hi);
      }
      groups_[r / kRows] = all;
    }
  }

  // Scores that are no product, three rows at a time.
  template <typename Score>
  HWY_INLINE void ComputeTerms(const Score& score, std::size_t count, std::size_t vectors, const T* q,
                               const T* panel, T* s) const {
    const T* a = parameter();
    const bool whole = vectors == kPanelVectors;
    std::size_t m = 0;
    for (std::size_t step = 3; m < count; m += step, q += step * q_stride_, s += step * kStride) {
      if (m + step > count) step = 1;
      for (std::size_t n = 0; n < (whole ? 1 : vectors); ++n) {
        const T* from = panel + n * LanesOf<T>();
        T* to = s + n * LanesOf<T>();
        if (whole && step == 3)
          score.template BlockOf<3, kPanelVectors>(q, q_stride_, from, a, D_, to, kStride);
        if (whole && step == 1)
          score.template BlockOf<1, kPanelVectors>(q, q_stride_, from, a, D_, to, kStride);
        if (!whole && step == 3) score.template BlockOf<3, 1>(q, q_stride_, from, a, D_, to, kStride);
        if (!whole && step == 1) score.template BlockOf<1, 1>(q, q_stride_, from, a, D_, to, kStride);
      }
    }
  }

  template <typename Score>
  HWY_NOINLINE void ComputeWidePairs(const Score& score, std::size_t begin, std::size_t end) {
    const Rows<T> k = RowsOf(p_.k, block_.b, block_.g);
    for (std::size_t r = begin; r < end; ++r) {
      for (std::size_t x = range(r).lo; x < range(r).hi; ++x) {
        if (!IsWidePair(r, x)) continue;
        s(r)[x] = score.Pair(OwnQuery(r), k[j0_ + static_cast<Index>(x)], parameter(), D_);
      }
    }
  }

  template <typename Score>
  HWY_INLINE void FinishRow(const Score& score, std::size_t r) {
    if (!plain_) Adjust(score, r);
    const Lanes<T> d;
    const RowRange keys = range(r);
    T* row = s(r);
    const std::size_t first = keys.FirstVector<T>(), end = keys.EndVector<T>();
    if (first < keys.lo) Forbid(row + first, hn::FirstN(d, keys.lo - first));
    if (keys.hi < end) {
      const std::size_t last = end - LanesOf<T>();
      Forbid(row + last, hn::Not(hn::FirstN(d, keys.hi - last)));
    }
    if (pairwise_) ForbidPairs(r);
  }

  template <typename M>
  HWY_INLINE void Forbid(T* at, M mask) const {
    const Lanes<T> d;
    hn::Store(hn::IfThenElse(mask, hn::Set(d, nothing_), hn::Load(d, at)), d, at);
  }

  void ForbidPairs(std::size_t r) {
    const RowRange keys = range(r);
    std::fill(allowed_ + keys.lo, allowed_ + keys.hi, std::uint8_t{1});
    p_.mask->TakeAway(block_.b, head(r), query(r), j0_ + static_cast<Index>(keys.lo),
                      j0_ + static_cast<Index>(keys.hi), allowed_ + keys.lo);
    T* row = s(r);
    for (std::size_t x = keys.lo; x < keys.hi; ++x) row[x] = allowed_[x] ? row[x] : nothing_;
  }

  // From raw scores to scores: the score's own last step, softcap, the caller's change, bias, ALiBi.
  template <typename Score>
  HWY_INLINE void Adjust(const Score& score, std::size_t r) {
    const Lanes<T> d;
    if constexpr (Score::kCompact) {
      FinishCompact(score, r);
      if (!p_.adjusted() || range(r).empty()) return;
    }
    const RowRange keys = range(r);
    const Index h = head(r), i = query(r);
    T* row = s(r);
    const std::size_t first = keys.FirstVector<T>(), end = keys.EndVector<T>();
    if constexpr (!Score::kCompact) {
      score.Finish(RowPlace{block_.b, h, block_.g, i, j0_}, keys, row);
      if (raw_ != nullptr) std::copy(row + first, row + end, raw_ + r * kStride + first);
    }
    if (p_.softcap) {
      const auto c = hn::Set(d, *p_.softcap), one = hn::Set(d, T(1));
      for (std::size_t x = first; x < end; x += LanesOf<T>()) {
        const auto t = Tanh<T>(hn::Div(hn::Load(d, row + x), c));
        hn::Store(hn::Mul(c, t), d, row + x);
        if (slope_ == nullptr) continue;
        T* slope = slope_ + r * kStride + x;
        const auto own = hn::NegMulAdd(t, t, one);
        hn::Store(Score::kCompact ? hn::Mul(own, hn::Load(d, slope)) : own, d, slope);
      }
    }
    if (p_.change != nullptr) {
      if (unchanged_ != nullptr) std::copy(row + keys.lo, row + keys.hi, unchanged_ + r * kStride + keys.lo);
      p_.change->Apply(pairs(r), p_.ChangeParameters(h), row + keys.lo);
    }
    if (p_.bias) AddBias(&(*p_.bias)(block_.b, h, i, j0_), p_.bias->strides[3], keys, row);
    if (p_.slopes != nullptr) {
      const auto slope = hn::Set(d, p_.slopes[h * p_.slopes_stride]);
      const auto lane = hn::Iota(d, 0);
      const Index place = i + p_.alibi_shift - j0_;
      for (std::size_t x = first; x < end; x += LanesOf<T>()) {
        const auto offset = hn::Add(lane, hn::Set(d, static_cast<T>(static_cast<Index>(x) - place)));
        hn::Store(hn::NegMulAdd(slope, hn::Abs(offset), hn::Load(d, row + x)), d, row + x);
      }
    }
    if constexpr (Score::kCompact) {  // what was added to -inf may have been NaN
      for (std::size_t x = first; x < end; x += LanesOf<T>()) {
        Forbid(row + x, hn::Eq(hn::Load(d, raw(r) + x), hn::Set(d, nothing_)));
      }
    }
  }

  // The last step of a compact kernel. The row's range becomes that of the vectors with a key inside.
  template <typename Score>
  HWY_INLINE void FinishCompact(const Score& score, std::size_t r) {
    const Lanes<T> d;
    RowRange& keys = ranges_[r];
    const std::size_t first = keys.FirstVector<T>(), end = keys.EndVector<T>();
    T* row = s(r);
    score.Finish(end - first, !weighs_, row + first, raw_ == nullptr ? nullptr : raw_ + r * kStride + first,
                 slope_ == nullptr ? nullptr : slope_ + r * kStride + first);
    if (p_.change != nullptr) return;  // the caller's formula adds a row up from its first key
    const auto outside = [&](std::size_t x) HWY_ATTR {
      return hn::AllTrue(d, hn::Eq(hn::Load(d, row + x), hn::Set(d, nothing_)));
    };
    std::size_t lo = first, hi = end;
    while (lo < hi && outside(lo)) lo += LanesOf<T>();
    while (lo < hi && outside(hi - LanesOf<T>())) hi -= LanesOf<T>();
    keys = lo == hi ? RowRange() : RowRange{std::max(keys.lo, lo), std::min(keys.hi, hi)};
  }

  HWY_INLINE void AddBias(const T* bias, Index stride, RowRange keys, T* row) const {
    const Lanes<T> d;
    if (stride != 1) {
      for (std::size_t x = keys.lo; x < keys.hi; ++x) row[x] += bias[static_cast<Index>(x) * stride];
      return;
    }
    for (std::size_t x = keys.FirstVector<T>(); x < keys.hi; x += LanesOf<T>()) {
      hn::Store(hn::Add(hn::Load(d, row + x), LoadUpTo(bias, x, keys.hi)), d, row + x);
    }
  }

  const Problem<T>& p_;
  KeyForm<T> form_;
  std::size_t D_, q_stride_;
  bool plain_, weighs_;
  T nothing_;  // what stands for a pair that does not exist
  bool pairwise_ = false;
  RowBlock block_{};
  Index j0_ = 0;
  T* q_;
  T* s_;
  T* slope_ = nullptr;
  T* raw_ = nullptr;
  T* unchanged_ = nullptr;
  std::optional<Boxes<T>> boxes_;
  const T* shifts_ = nullptr;
  RowRange* ranges_;
  RowRange* groups_;
  std::uint8_t* allowed_;
  std::uint8_t* wide_rows_;
  const std::uint8_t* wide_keys_ = nullptr;
  bool any_wide_row_ = false, any_wide_key_ = false;
};

// exp(s - shift) of what the tile holds, scale and shift as exponents of 2. Where it weighs, shift is 0.
template <typename Score, typename T>
HWY_INLINE Vector<T> Weight(const ScoreTile<T>& tile, const T* s, Vector<T> scale, Vector<T> shift) {
  const auto x = hn::Load(Lanes<T>(), s);
  if constexpr (Score::kCompact) {
    if (tile.weighs()) return x;
  }
  return Exp2<T>(Exponent<T>(x, scale, shift));
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_TILE_INL_H_
