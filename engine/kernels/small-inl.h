// The forward pass where there are few keys: a query to a lane, so that maxima and sums over the keys are
// those of vectors, and nothing is kept from tile to tile.
#if defined(REGARD_ENGINE_KERNELS_SMALL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_SMALL_INL_H_
#undef REGARD_ENGINE_KERNELS_SMALL_INL_H_
#else
#define REGARD_ENGINE_KERNELS_SMALL_INL_H_
#endif

#include <algorithm>

#include "engine/kernels/tile-inl.h"
#include "engine/kernels/tiled_forward.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// lse = max ln 2 + log(sum), -inf where the sum is 0; in place of max, an exponent of 2
template <typename V>
HWY_INLINE V Lse(V max, V sum) {
  const Lanes<double> d;
  const auto lse = hn::MulAdd(max, hn::Set(d, kLn2), hn::Log(d, sum));
  return hn::IfThenElse(hn::Ne(sum, hn::Zero(d)), lse, hn::Set(d, kMinusInfinity<double>));
}

HWY_INLINE void LogSums(double* max, const double* sum) {
  const Lanes<double> d;
  hn::Store(Lse(hn::Load(d, max), hn::Load(d, sum)), d, max);
}
HWY_INLINE void LogSums(float* max, const float* sum) {
  const Lanes<double> d;
  const hn::Rebind<float, Lanes<double>> df;
  for (std::size_t n = 0; n < LanesOf<float>(); n += LanesOf<double>()) {
    const auto s = hn::PromoteTo(d, hn::Load(df, sum + n));
    hn::Store(hn::DemoteTo(df, Lse(hn::PromoteTo(d, hn::Load(df, max + n)), s)), df, max + n);
  }
}

template <typename T>
class SmallForward {
 public:
  SmallForward(const TiledForwardCall<T>& call, Scratch* scratch)
      : p_(call.problem),
        outputs_(call.outputs),
        blocks_(call.blocks),
        D_(static_cast<std::size_t>(p_.D)),
        E_(static_cast<std::size_t>(p_.E)),
        S_(static_cast<std::size_t>(p_.S)),
        width_(static_cast<std::size_t>(Padded(p_.E))),
        scale_(static_cast<T>(static_cast<double>(p_.scale) * kLog2E)),
        q_(scratch->Take<T>(kWidth * D_)),
        own_values_(scratch->Take<T>(S_ * width_)),
        p_ij_(scratch->Take<T>(S_ * kWidth)),
        out_(scratch->Take<T>(kRows * width_)),
        max_(scratch->Take<T>(kWidth)),
        sum_(scratch->Take<T>(kWidth)),
        keys_(scratch->Take<RowRange>(kWidth)) {}

  // False: a value that a mask may hide is NaN or infinite, and nothing was done.
  bool Run(Index task) {
    block_ = blocks_[task];
    if (!SetValues(RowsOf(p_.v, block_.b, block_.g))) return false;
    for (Index i = block_.i0; i < block_.i1; i += static_cast<Index>(kWidth)) {
      const auto rows = std::min(kWidth, static_cast<std::size_t>(block_.i1 - i));
      RunRows((rows + LanesOf<T>() - 1) / LanesOf<T>(), i, rows);
    }
    return true;
  }

 private:
  static constexpr std::size_t kWidth = kPanel<T>;

  bool SetValues(const Rows<T>& v) {
    values_ = v[0];
    value_stride_ = v.stride;
    if (!p_.mask->none()) {
      for (std::size_t x = 0; x < S_; ++x) {
        if (!IsFinite(v[static_cast<Index>(x)], E_)) return false;
      }
    }
    if (E_ == width_) return true;
    const Lanes<T> d;
    for (std::size_t x = 0; x < S_; ++x) {
      const T* from = v[static_cast<Index>(x)];
      T* to = own_values_ + x * width_;
      for (std::size_t e = 0; e < width_; e += LanesOf<T>()) hn::Store(LoadUpTo(from, e, E_), d, to + e);
    }
    values_ = own_values_;
    value_stride_ = static_cast<Index>(width_);
    return true;
  }

  // Queries i .. i + rows - 1, in so many vectors.
  void RunRows(std::size_t vectors, Index i, std::size_t rows) {
    const Index h = block_.h0;
    const Rows<T> q = RowsOf(p_.q, block_.b, h), k = RowsOf(p_.k, block_.b, block_.g);
    PackQueries(vectors, q[i], q.stride, rows);
    SetRanges(vectors, i, rows);
    for (std::size_t j = 0; j < S_; j += kRows) {
      const std::size_t keys = std::min(kRows, S_ - j);
      std::size_t first = 0, end = vectors;
      while (first < end && !Meets(vector_keys_[first], j, keys)) ++first;
      while (first < end && !Meets(vector_keys_[end - 1], j, keys)) --end;
      if (first == end) continue;
      const std::size_t at = first * LanesOf<T>();
      Multiply<false>(keys, end - first,
                      BlockProduct<T>{k[static_cast<Index>(j)], static_cast<std::size_t>(k.stride), q_ + at,
                                      kWidth, D_, p_ij_ + j * kWidth + at, kWidth, false});
    }
    for (std::size_t n = 0; n < vectors; ++n) Weights(vector_keys_[n], n * LanesOf<T>());
    for (std::size_t r = 0; r < rows; r += kRows) {
      const std::size_t count = std::min(kRows, rows - r);
      const RowRange keys = All(r, count);
      for (std::size_t e = 0; e < width_; e += kWidth) {
        Multiply<true>(count, std::min(kPanelVectors, (width_ - e) / LanesOf<T>()),
                       BlockProduct<T>{p_ij_ + keys.lo * kWidth + r, kWidth,
                                       values_ + static_cast<Index>(keys.lo) * value_stride_ + e,
                                       static_cast<std::size_t>(value_stride_), keys.hi - keys.lo, out_ + e,
                                       width_, false});
      }
      for (std::size_t m = 0; m < count; ++m) {
        T* to = &outputs_.out(block_.b, h, i + static_cast<Index>(r + m), 0);
#if HWY_TARGET != HWY_SCALAR
        if (E_ <= LanesOf<T>() / 2) {  // a division takes as long as its vector is wide
          Finish(hn::Half<Lanes<T>>(), sum_[r + m], out_ + m * width_, to);
          continue;
        }
#endif
        Finish(Lanes<T>(), sum_[r + m], out_ + m * width_, to);
      }
    }
    if (!outputs_.lse) return;
    for (std::size_t r = 0; r < rows; r += LanesOf<T>()) LogSums(max_ + r, sum_ + r);
    for (std::size_t r = 0; r < rows; ++r) (*outputs_.lse)(block_.b, h, i + static_cast<Index>(r)) = max_[r];
  }

  // q_ [D, kWidth] = the transpose of q [rows, D], 0 in the rest of the vectors
  HWY_INLINE void PackQueries(std::size_t vectors, const T* q, Index stride, std::size_t rows) {
    if (rows == kWidth) return PackPanel(q, stride, rows, D_, q_);
    const Lanes<T> d;
    for (std::size_t at = 0; at < D_; ++at)
      hn::Store(hn::Zero(d), d, q_ + at * kWidth + (vectors - 1) * LanesOf<T>());
    for (std::size_t r = 0; r < rows; ++r, q += stride) {
      for (std::size_t at = 0; at < D_; ++at) q_[at * kWidth + r] = q[at];
    }
  }

  static bool Meets(const RowRange& range, std::size_t j, std::size_t keys) {
    return range.lo < j + keys && j < range.hi;
  }

  // The keys that rows r .. r + count - 1 see, and those between; 0 <= lo <= hi <= S.
  RowRange All(std::size_t r, std::size_t count) const {
    RowRange all{S_, 0};
    for (std::size_t m = r; m < r + count; ++m) {
      if (keys_[m].empty()) continue;
      all = {std::min(all.lo, keys_[m].lo), std::max(all.hi, keys_[m].hi)};
    }
    return all.empty() ? RowRange() : all;
  }

  HWY_INLINE void SetRanges(std::size_t vectors, Index i, std::size_t rows) {
    if (p_.mask->none()) {
      std::fill(keys_, keys_ + rows, RowRange{0, S_});
      std::fill(vector_keys_, vector_keys_ + vectors, RowRange{0, S_});
      return;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const MaskRule::Range keys = p_.mask->KeysInRange(block_.b, i + static_cast<Index>(r));
      keys_[r] = {static_cast<std::size_t>(std::max<Index>(0, keys.begin)),
                  static_cast<std::size_t>(std::clamp<Index>(keys.end, 0, p_.S))};
    }
    std::fill(keys_ + rows, keys_ + vectors * LanesOf<T>(), RowRange());
    for (std::size_t n = 0; n < vectors; ++n) vector_keys_[n] = All(n * LanesOf<T>(), LanesOf<T>());
  }

  // From the products of the vector of rows from r on to exp(s - max), and the sums of these. `range`: what
  // these rows see.
  HWY_INLINE void Weights(const RowRange& range, std::size_t r) {
    const Lanes<T> d;
    T* p = p_ij_ + r;
    const auto scale = hn::Set(d, scale_), none = hn::Set(d, kMinusInfinity<T>);
    if (!p_.mask->none()) Forbid(range, r);
    auto max = none;
    for (std::size_t j = range.lo; j < range.hi; ++j) max = hn::Max(max, hn::Load(d, p + j * kWidth));
    max = hn::Mul(max, scale);
    const auto shift = hn::IfThenZeroElse(hn::Eq(max, none), max);
    auto sum = hn::Zero(d);
    for (std::size_t j = range.lo; j < range.hi; ++j) {
      const auto e = Exp2<T>(Exponent<T>(hn::Load(d, p + j * kWidth), scale, shift));
      sum = hn::Add(sum, e);
      hn::Store(e, d, p + j * kWidth);
    }
    hn::Store(shift, d, max_ + r);
    hn::Store(sum, d, sum_ + r);
    for (std::size_t j = 0; j < range.lo; ++j) hn::Store(hn::Zero(d), d, p + j * kWidth);
    for (std::size_t j = range.hi; j < S_; ++j) hn::Store(hn::Zero(d), d, p + j * kWidth);
  }

  // -inf for the keys of `range` that a row from r on does not see.
  HWY_INLINE void Forbid(const RowRange& range, std::size_t r) {
    const Lanes<T> d;
    HWY_ALIGN T begins[LanesOf<T>()], ends[LanesOf<T>()];
    for (std::size_t n = 0; n < LanesOf<T>(); ++n) {
      begins[n] = static_cast<T>(keys_[r + n].lo);
      ends[n] = static_cast<T>(keys_[r + n].hi);
    }
    const auto begin = hn::Load(d, begins), end = hn::Load(d, ends);
    for (std::size_t j = range.lo; j < range.hi; ++j) {
      const auto at = hn::Set(d, static_cast<T>(j));
      const auto allowed = hn::And(hn::Ge(at, begin), hn::Lt(at, end));
      T* row = p_ij_ + r + j * kWidth;
      hn::Store(hn::IfThenElse(allowed, hn::Load(d, row), hn::Set(d, kMinusInfinity<T>)), d, row);
    }
  }

  // to [E] = sums [width] / sum, 0 where the row sees nothing
  template <typename D>
  HWY_INLINE void Finish(D d, T sum, T* sums, T* to) const {
    const auto divisor = hn::Set(d, sum != 0 ? sum : T(1));  // NaN sees
    const Index stride = outputs_.out.strides[3];
    for (std::size_t e = 0; e < E_; e += hn::Lanes(d)) {
      const auto y = hn::Div(hn::Load(d, sums + e), divisor);
      if (stride == 1 && e + hn::Lanes(d) <= E_) {
        hn::StoreU(y, d, to + e);
        continue;
      }
      hn::Store(y, d, sums + e);
      for (std::size_t x = e; x < std::min(e + hn::Lanes(d), E_); ++x)
        to[static_cast<Index>(x) * stride] = sums[x];
    }
  }

  const Problem<T>& p_;
  const AttentionOutputs<T>& outputs_;
  RowBlocks blocks_;
  RowBlock block_{};
  std::size_t D_, E_, S_, width_;  // width: E in whole vectors
  T scale_;                        // from products to exponents of 2
  T* q_;                           // a panel
  T* own_values_;                  // [S, width]
  const T* values_ = nullptr;      // [S, value_stride]
  Index value_stride_ = 0;
  T* p_ij_;         // [S, kWidth]
  T* out_;          // [kRows, width]
  T *max_, *sum_;   // [kWidth]; max as an exponent of 2
  RowRange* keys_;  // [kWidth]
  RowRange vector_keys_[kPanelVectors];
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_SMALL_INL_H_
