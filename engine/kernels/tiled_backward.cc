// Backward: dout [B,H,L,E] -> dq [B,H,L,D], dk [B,G,S,D], dv [B,G,S,E]
//
//   p_ij  = exp(s_ij - lse_i)
//   dp_ij = drop_ij dout_i·v_j + dweights_ij
//   ds_ij = p_ij (dp_ij + t_i),   t_i = dlse_i - sum_j p_ij dp_ij
//   dv_j  = sum_i p_ij drop_ij dout_i
//   dq_i  = sum_j ds_ij ds/dq,   dk_j = sum_i ds_ij ds/dk      (Dao et al. 2022, "FlashAttention", appendix
//   B)
//
// One visit of a tile gives all three: two products for s and dp, three for dv, dk and dq. (A pass over the
// queries and another over the keys, with nothing shared, would take seven.) A tile of keys is packed when
// its turn comes, and stays while all queries pass by.
#include "engine/kernels/tiled_backward.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/tiled_backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which these need.
#include "engine/kernels/row_gradient-inl.h"
#include "engine/kernels/tile-inl.h"
#include "engine/policies/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// Rows r0 .. r1 - 1 of a gradient, `factor` times what was summed.
template <typename T>
HWY_INLINE void WriteRows(const TensorView<T, 4>& to, Index a, Index head, Index r0, Index r1, T factor,
                          const T* from, std::size_t width, bool accumulate) {
  if (width == 0) return;  // perhaps no memory
  for (Index r = r0; r < r1; ++r, from += width) {
    T* row = to.data + a * to.strides[0] + head * to.strides[1] + r * to.strides[2];
    const Index stride = to.strides[3];
    for (Index at = 0; at < to.shape[3]; ++at) {
      const T value = factor * from[at];
      row[at * stride] = accumulate ? row[at * stride] + value : value;
    }
  }
}

template <typename T, typename Score>
class TiledBackward {
 public:
  TiledBackward(const TiledBackwardCall<T>& call, const Score& score, Scratch* scratch)
      : call_(call),
        p_(call.problem),
        up_(call.upstream),
        grads_(call.gradients),
        score_(score),
        blocks_(p_),
        tile_(p_, TileUse::kGradients, scratch),
        D_(static_cast<std::size_t>(p_.D)),
        E_(static_cast<std::size_t>(p_.E)),
        d_width_(static_cast<std::size_t>(Padded(p_.D))),
        e_width_(static_cast<std::size_t>(Padded(p_.E))) {
    key_panels_ = scratch->Take<T>(kKeys * D_);
    if constexpr (!Score::kProduct) {
      dk_panels_ = scratch->Take<T>(kKeys * D_);
      wide_keys_ = scratch->Take<std::uint8_t>(kKeys);
    }
    value_panels_ = scratch->Take<T>(kKeys * E_);
    keys_ = scratch->Take<T>(kKeys * d_width_);
    dk_ = scratch->Take<T>(kKeys * d_width_);
    dv_ = scratch->Take<T>(kKeys * e_width_);
    dout_ = scratch->Take<T>(kBlockRows * e_width_);
    dp_ = scratch->Take<T>(kBlockRows * kKeys);
    if (!Score::kProduct) unused_sums_.resize(D_);
    if (p_.may_be_negligible() && call.finite) {
      lse2_ = scratch->Take<T>(kBlockRows);
      tile_.LeaveOutNegligible(lse2_, scratch);
    }
    if (call.spoilt) {
      clean_q_ = scratch->Take<T>(kBlockRows * d_width_);
      forbidden_ = scratch->Take<std::uint8_t>(kBlockRows * kKeys);
    }
    rows_.emplace(call, tile_, dp_, forbidden_, scratch);
  }

  void Run(Index task) {
    const Index head = task / call_.parts;
    b_ = head / p_.G;
    g_ = head % p_.G;
    const Index part = task % call_.parts;
    dq_ = call_.query_gradients + task * call_.query_gradient_size();
    std::fill(dq_, dq_ + call_.query_gradient_size(), T(0));
    if (call_.parameter_sums != nullptr)
      parameter_sums_ = call_.parameter_sums + task * call_.parameter_size();
    double* change_sums = nullptr;
    if (p_.change != nullptr) {
      change_sums = call_.change_sums + task * p_.group * call_.change_size();
      std::fill_n(change_sums, p_.group * call_.change_size(), 0.0);
    }
    rows_->Start(part, change_sums);
    for (Index j0 = part * kTileKeys; j0 < p_.S; j0 += call_.parts * kTileKeys) RunTile(j0);
  }

 private:
  static constexpr std::size_t kKeys = static_cast<std::size_t>(kTileKeys);

  void RunTile(Index j0) {
    const Index j1 = std::min(j0 + kTileKeys, p_.S);
    const auto count = static_cast<std::size_t>(j1 - j0);
    const Rows<T> k = RowsOf(p_.k, b_, g_), v = RowsOf(p_.v, b_, g_);
    PackKeys(k[j0], k.stride, count, D_, tile_.form(), key_panels_, wide_keys_);
    PackPanels(v[j0], v.stride, count, E_, value_panels_);
    for (std::size_t x = 0; x < count; ++x) {
      Copy(k[j0 + static_cast<Index>(x)], D_, d_width_, keys_ + x * d_width_);
    }
    if constexpr (!Score::kProduct) {
      std::fill(dk_panels_, dk_panels_ + PanelsSize<T>(count, D_), T(0));
    }
    std::fill(dk_, dk_ + count * d_width_, T(0));
    std::fill(dv_, dv_ + count * e_width_, T(0));
    if constexpr (Score::kNormed) std::fill(column_sums_, column_sums_ + kKeys, T(0));
    const Index per_group = blocks_.per_group * blocks_.per_head;
    for (Index n = 0; n < per_group; ++n) {
      tile_.SetBlock(blocks_[(b_ * p_.G + g_) * per_group + n], score_);
      if (tile_.SetTile(j0)) {
        RunBlock();
      } else {
        for (std::size_t r = 0; r < tile_.rows(); ++r) rows_->AddBias(r, nullptr);
      }
    }
    if (grads_.dk) {
      if constexpr (!Score::kProduct) {
        for (std::size_t x = 0; x < count; ++x) {
          const T* from = dk_panels_ + PanelOffset<T>(x, D_);
          for (std::size_t at = 0; at < D_; ++at) dk_[x * d_width_ + at] = from[at * kPanel<T>];
        }
      }
      if constexpr (Score::kNormed) {
        for (std::size_t x = 0; x < count; ++x) {
          score_.SubtractAlong(column_sums_[x], p_.k_norm(b_, g_, j0 + static_cast<Index>(x)),
                               keys_ + x * d_width_, d_width_, dk_ + x * d_width_);
        }
      }
      WriteRows(*grads_.dk, b_, g_, j0, j1, ProductScale(), dk_, d_width_, grads_.accumulate);
    }
    if (grads_.dv) WriteRows(*grads_.dv, b_, g_, j0, j1, T(1), dv_, e_width_, grads_.accumulate);
  }

  T ProductScale() const {
    if constexpr (Score::kProduct) return score_.product_scale();
    return T(1);
  }

  HWY_INLINE void Copy(const T* from, std::size_t size, std::size_t width, T* to) const {
    CopyRow(from, size, width, to);
    if (call_.spoilt) Clean(to, size);
  }

  void RunBlock() {
    if (!p_.soft() && up_.dout && grads_.dv) AddChosenValues();
    if (!call_.to_scores()) {
      for (std::size_t r = 0; r < tile_.rows(); ++r) rows_->AddBias(r, nullptr);
      return;
    }
    for (std::size_t r = 0; lse2_ != nullptr && r < tile_.rows(); ++r) {
      lse2_[r] = up_.lse(b_, tile_.head(r), tile_.query(r)) * static_cast<T>(kLog2E);
    }
    tile_.Compute(score_, key_panels_, wide_keys_);
    if (tile_.empty() && call_.bias == nullptr) return;
    if (call_.to_values()) {
      for (std::size_t r = 0; r < tile_.rows(); ++r) {
        const T* row = RowsOf(*up_.dout, b_, tile_.head(r))[tile_.query(r)];
        Copy(row, E_, e_width_, dout_ + r * e_width_);
      }
      MultiplyValues();
    }
    const T* q = tile_.q(0);
    if (call_.spoilt) {
      for (std::size_t r = 0; r < tile_.rows(); ++r) {
        if constexpr (Score::kProduct) Copy(tile_.q(r), D_, d_width_, clean_q_ + r * d_width_);
        for (std::size_t x = 0; x < kKeys; ++x) {
          forbidden_[r * kKeys + x] = static_cast<std::uint8_t>(!tile_.Allows(r, x));
        }
      }
      q = clean_q_;
    }
    for (std::size_t r = 0; r < tile_.rows(); ++r) {
      rows_->Differentiate(r);
      if constexpr (Score::kNormed) SubtractAlong(r);
    }
    if (call_.to_values() && grads_.dv) AddAcross(tile_.s(0), dout_, e_width_, dv_);
    if constexpr (Score::kProduct) {
      if (grads_.dk) AddAcross(dp_, q, d_width_, dk_);
      if (grads_.dq) AddQueries();
    } else {
      if (tile_.any_wide()) DifferentiateWidePairs();
      for (std::size_t at = 0; at < D_; ++at) {
        if constexpr (Score::kCustom) {
          DifferentiateCustomTerms(at);
        } else {
          DifferentiateTerms(at);
        }
      }
    }
    if (call_.spoilt) AddSpoiltRows();
  }

  // What the rows of dout, q and k that are not finite do to the pairs that the mask allows.
  HWY_NOINLINE void AddSpoiltRows() {
    const Rows<T> k = RowsOf(p_.k, b_, g_);
    for (std::size_t r = 0; r < tile_.rows(); ++r) {
      const Index h = tile_.head(r), i = tile_.query(r);
      for (std::size_t x = tile_.range(r).lo; x < tile_.range(r).hi; ++x) {
        if (forbidden_[r * kKeys + x]) continue;
        [[maybe_unused]] const T ds = dp_[r * kKeys + x];
        if (call_.to_values() && grads_.dv) {
          AddSpoilt(tile_.s(r)[x], RowsOf(*up_.dout, b_, h)[i], E_, 1, dv_ + x * e_width_);
        }
        if constexpr (Score::kProduct) {
          if (grads_.dk) AddSpoilt(ds, tile_.q(r), D_, 1, dk_ + x * d_width_);
          if (grads_.dq) AddSpoilt(ds, k[tile_.j0() + static_cast<Index>(x)], D_, 1, DqRow(r));
        }
      }
    }
  }

  T* DqRow(std::size_t r) const {
    const Index head = tile_.head(r) - g_ * p_.group;
    return dq_ + (head * p_.L + tile_.query(r)) * static_cast<Index>(d_width_);
  }

  // dp [rows, keys] = dout v
  HWY_INLINE void MultiplyValues() {
    constexpr std::size_t kWidth = kPanel<T>;
    const T* panel = value_panels_;
    for (std::size_t x = 0; x < kKeys; x += kWidth, panel += kWidth * E_) {
      for (std::size_t r = 0; r < tile_.rows(); r += kRows) {
        const RowRange& g = tile_.group(r);
        if (g.hi <= x || g.lo >= x + kWidth) continue;
        const std::size_t vectors = std::min(kPanelVectors, (g.hi - x + LanesOf<T>() - 1) / LanesOf<T>());
        Multiply<false>(tile_.group_rows(r), vectors,
                        BlockProduct<T>{dout_ + r * e_width_, e_width_, panel, kWidth, E_,
                                        dp_ + r * kKeys + x, kKeys, false});
      }
    }
  }

  // dv of the chosen keys += drop dout; NaN where the scores hold one.
  void AddChosenValues() {
    for (std::size_t r = 0; r < tile_.rows(); ++r) {
      const Index h = tile_.head(r), i = tile_.query(r);
      const std::size_t chosen = rows_->Chosen(r);
      const T lse = up_.lse(b_, h, i);
      if (chosen == kKeys || lse == kMinusInfinity<T>) continue;
      T weight = std::isnan(lse) ? lse : T(1);
      if (p_.dropout.active()) {
        const RandomRow random(p_.dropout_seed, Stream::kDropout, b_, h, i);
        const bool keeps = p_.dropout.Keeps(random.Bits(tile_.j0() + static_cast<Index>(chosen)));
        weight *= keeps ? static_cast<T>(p_.dropout.scale()) : T(0);
      }
      const T* dout = RowsOf(*up_.dout, b_, h)[i];
      T* dv = dv_ + chosen * e_width_;
      for (std::size_t e = 0; e < E_; ++e) dv[e] += weight * dout[e];
    }
  }

  // What lies along a query or a key has no effect on their cosine.
  HWY_INLINE void SubtractAlong(std::size_t r) {
    const RowRange keys = tile_.range(r);
    const Index h = tile_.head(r), i = tile_.query(r);
    if (keys.empty()) return;
    const T along = score_.ToProducts(RowPlace{b_, h, g_, i, tile_.j0()}, keys, tile_.raw(r), dp_ + r * kKeys,
                                      column_sums_);
    score_.SubtractAlong(along, p_.q_norm(b_, h, i), tile_.q(r), d_width_, DqRow(r));
  }

  // to [keys, width] += a^T rows, a [block rows, keys], rows [block rows, width]
  HWY_INLINE void AddAcross(const T* a, const T* rows, std::size_t width, T* to) {
    const auto count = static_cast<std::size_t>(std::min(kTileKeys, p_.S - tile_.j0()));
    for (std::size_t e = 0; e < width; e += kPanel<T>) {
      const std::size_t vectors = std::min(kPanelVectors, (width - e) / LanesOf<T>());
      for (std::size_t x = 0; x < count; x += kRows) {
        std::size_t begin = tile_.rows(), end = 0;  // of the block's rows, those that see one of these keys
        for (std::size_t r = 0; r < tile_.rows(); r += kRows) {
          const RowRange& g = tile_.group(r);
          if (g.hi <= x || g.lo >= x + kRows) continue;
          begin = std::min(begin, r);
          end = r + tile_.group_rows(r);
        }
        if (begin >= end) continue;
        Multiply<true>(std::min(kRows, count - x), vectors,
                       BlockProduct<T>{a + begin * kKeys + x, kKeys, rows + begin * width + e, width,
                                       end - begin, to + x * width + e, width, true});
      }
    }
  }

  // dq [rows, D] += ds k
  HWY_INLINE void AddQueries() {
    for (std::size_t e = 0; e < d_width_; e += kPanel<T>) {
      const std::size_t vectors = std::min(kPanelVectors, (d_width_ - e) / LanesOf<T>());
      for (std::size_t r = 0; r < tile_.rows(); r += kRows) {
        const RowRange& g = tile_.group(r);
        if (g.empty()) continue;
        // Rows of a block lie one after the other: head after head, query after query.
        Multiply<false>(tile_.group_rows(r), vectors,
                        BlockProduct<T>{dp_ + r * kKeys + g.lo, kKeys, keys_ + g.lo * d_width_ + e, d_width_,
                                        g.hi - g.lo, DqRow(r) + e, d_width_, true});
      }
    }
  }

  // The pairs that the panels leave out, one by one.
  HWY_NOINLINE void DifferentiateWidePairs() {
    const Rows<T> k = RowsOf(p_.k, b_, g_);
    double* sums = parameter_sums_ == nullptr ? unused_sums_.data() : ParameterSums();
    for (std::size_t r = 0; r < tile_.rows(); ++r) {
      for (std::size_t x = tile_.range(r).lo; x < tile_.range(r).hi; ++x) {
        if (!tile_.IsWidePair(r, x)) continue;
        T& ds = dp_[r * kKeys + x];
        if (Score::kCompact ? ds != T(0) : tile_.Allows(r, x)) {  // outside, z may be infinite
          score_.PairGradient(tile_.OwnQuery(r), k[tile_.j0() + static_cast<Index>(x)], tile_.parameter(), D_,
                              ds, DqRow(r), dk_panels_ + PanelOffset<T>(x, D_), kPanel<T>, sums);
        }
        ds = T(0);
      }
    }
  }

  double* ParameterSums() const {
    return parameter_sums_ + (call_.parameter_heads == 1 ? 0 : tile_.block().h0) * p_.D;
  }

  // One dimension of a score that is no product: dq, dk and the parameter's gradient.
  HWY_INLINE void DifferentiateTerms(std::size_t at) {
    const Lanes<T> d;
    constexpr std::size_t kLanes = LanesOf<T>();
    const T w = tile_.parameter()[at];
    HWY_ALIGN_MAX T key_sums[kKeys];
    const auto count = static_cast<std::size_t>(std::min(kTileKeys, p_.S - tile_.j0()));
    std::fill(key_sums, key_sums + kKeys, T(0));
    auto parameter = hn::Zero(d);
    T* dq = DqRow(0) + at;
    for (std::size_t r = 0; r < tile_.rows(); ++r, dq += d_width_) {
      const RowRange& keys = tile_.range(r);
      if (keys.empty()) continue;
      const auto q = hn::Set(d, tile_.q(r)[at]);
      const T* ds = dp_ + r * kKeys;
      auto query1 = hn::Zero(d), query2 = hn::Zero(d);  // two sums err less than one
      for (std::size_t x = keys.lo / (2 * kLanes) * (2 * kLanes); x < keys.hi; x += 2 * kLanes) {
        const T* key = key_panels_ + PanelOffset<T>(x, D_) + at * kPanel<T>;
        const auto ds1 = hn::Load(d, ds + x), ds2 = hn::Load(d, ds + x + kLanes);
        Vector<T> g1, g2, u1, u2;
        score_.Gradient(q, hn::Load(d, key), hn::Load(d, key + kLanes), ds1, ds2, g1, g2, u1, u2);
        query1 = hn::Add(query1, g1);
        query2 = hn::Add(query2, g2);
        parameter = hn::Add(parameter, hn::Add(u1, u2));
        hn::Store(hn::Add(hn::Load(d, key_sums + x), g1), d, key_sums + x);
        hn::Store(hn::Add(hn::Load(d, key_sums + x + kLanes), g2), d, key_sums + x + kLanes);
      }
      *dq += score_.QueryFactor(w) * SumOf<T>(hn::Add(query1, query2));
    }
    const auto factor = hn::Set(d, score_.KeyFactor(w));
    for (std::size_t x = 0; x < count; x += kLanes) {
      T* to = dk_panels_ + PanelOffset<T>(x, D_) + at * kPanel<T>;
      hn::Store(hn::MulAdd(factor, hn::Load(d, key_sums + x), hn::Load(d, to)), d, to);
    }
    if (parameter_sums_ != nullptr) {
      ParameterSums()[at] += score_.ParameterGradient(w, static_cast<double>(SumOf<T>(parameter)));
    }
  }

  // The same by the caller's loop, a panel at a time.
  HWY_NOINLINE void DifferentiateCustomTerms(std::size_t at) {
    const Lanes<T> d;
    constexpr std::size_t kWidth = kPanel<T>;
    const T w = tile_.parameter() == nullptr ? T(0) : tile_.parameter()[at];
    HWY_ALIGN_MAX T query[kWidth], weight[kWidth];
    double parameter = 0;
    for (std::size_t r = 0; r < tile_.rows(); ++r) {
      const RowRange& keys = tile_.range(r);
      if (keys.empty()) continue;
      VectorSum<T> query_sum, weight_sum;
      for (std::size_t x = keys.lo / kWidth * kWidth; x < keys.hi; x += kWidth) {
        const std::size_t place = PanelOffset<T>(x, D_) + at * kWidth;
        score_.rows.Differentiate(tile_.q(r)[at], key_panels_ + place, w, kWidth, dp_ + r * kKeys + x, query,
                                  dk_panels_ + place, weight);
        for (std::size_t n = 0; n < kWidth; n += LanesOf<T>()) {
          query_sum[x + n] = hn::Add(query_sum[x + n], hn::Load(d, query + n));
          weight_sum[x + n] = hn::Add(weight_sum[x + n], hn::Load(d, weight + n));
        }
      }
      DqRow(r)[at] += query_sum.Total();
      parameter += static_cast<double>(weight_sum.Total());
    }
    if (parameter_sums_ != nullptr) ParameterSums()[at] += parameter;
  }

  const TiledBackwardCall<T>& call_;
  const Problem<T>& p_;
  const AttentionUpstream<T>& up_;
  const AttentionGradients<T>& grads_;
  Score score_;
  RowBlocks blocks_;
  ScoreTile<T> tile_;
  std::size_t D_, E_, d_width_, e_width_;
  T* lse2_ = nullptr;  // [rows], lse as an exponent of 2
  Index b_ = 0, g_ = 0;
  T *key_panels_, *value_panels_, *keys_;  // this tile's
  T *dk_, *dv_;
  T* dout_;  // this block's, [rows, e_width]
  T* dp_;    // [rows, kTileKeys]
  T* dq_ = nullptr;
  T* dk_panels_ = nullptr;             // of scores that are no product
  std::uint8_t* wide_keys_ = nullptr;  // and of this tile, see Panels
  double* parameter_sums_ = nullptr;   // this task's
  std::vector<double> unused_sums_;
  T* clean_q_ = nullptr;               // where a tensor is spoilt: this block's queries, and
  std::uint8_t* forbidden_ = nullptr;  // what the mask says of each pair, [rows, kTileKeys]
  std::optional<RowGradient<T, Score>> rows_;
  HWY_ALIGN_MAX T column_sums_[kTileKeys];
};

template <typename T>
HWY_INLINE void TiledBackwardRangeOf(const TiledBackwardCall<T>& call, Index first, Index last) {
  Scratch scratch;
  VisitScore(call.problem, [&](const auto& score) HWY_ATTR {
    TiledBackward block(call, score, &scratch);
    for (Index task = first; task < last; ++task) block.Run(call.Task(task));
  });
}

void TiledBackwardRangeF32(const TiledBackwardCall<float>& call, Index first, Index last) {
  TiledBackwardRangeOf(call, first, last);
}
void TiledBackwardRangeF64(const TiledBackwardCall<double>& call, Index first, Index last) {
  TiledBackwardRangeOf(call, first, last);
}

template <typename T>
HWY_INLINE void ReduceQueryGradientOf(const TiledBackwardCall<T>& call, Index first, Index last) {
  const Lanes<T> d;
  const Problem<T>& p = call.problem;
  const auto width = static_cast<std::size_t>(Padded(p.D));
  const auto size = static_cast<std::size_t>(p.L) * width;
  for (Index head = first; head < last; ++head) {
    const Index b = head / p.H, h = head % p.H;
    const Index key_head = b * p.G + p.KeyHead(h);
    const auto part = [&](Index n) HWY_ATTR {
      return call.query_gradients + (key_head * call.parts + n) * call.query_gradient_size() +
             h % p.group * static_cast<Index>(size);
    };
    T* sum = part(0);
    for (Index n = 1; n < call.parts; ++n) {
      const T* more = part(n);
      for (std::size_t at = 0; at < size; at += LanesOf<T>()) {
        hn::Store(hn::Add(hn::Load(d, sum + at), hn::Load(d, more + at)), d, sum + at);
      }
    }
    const T factor = p.score == ScoreKind::kDot ? p.scale : T(1);
    WriteRows(*call.gradients.dq, b, h, Index{0}, p.L, factor, static_cast<const T*>(sum), width,
              call.gradients.accumulate);
  }
}

void ReduceQueryGradientF32(const TiledBackwardCall<float>& call, Index first, Index last) {
  ReduceQueryGradientOf(call, first, last);
}
void ReduceQueryGradientF64(const TiledBackwardCall<double>& call, Index first, Index last) {
  ReduceQueryGradientOf(call, first, last);
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::engine {

HWY_EXPORT(TiledBackwardRangeF32);
HWY_EXPORT(TiledBackwardRangeF64);
HWY_EXPORT(ReduceQueryGradientF32);
HWY_EXPORT(ReduceQueryGradientF64);

template <>
void TiledBackwardRange(const TiledBackwardCall<float>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(TiledBackwardRangeF32)(call, first, last);
}
template <>
void TiledBackwardRange(const TiledBackwardCall<double>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(TiledBackwardRangeF64)(call, first, last);
}
template <>
void ReduceQueryGradient(const TiledBackwardCall<float>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(ReduceQueryGradientF32)(call, first, last);
}
template <>
void ReduceQueryGradient(const TiledBackwardCall<double>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(ReduceQueryGradientF64)(call, first, last);
}

}  // namespace regard::engine
#endif  // HWY_ONCE
