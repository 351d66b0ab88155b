// Forward, for compact kernels: q [B,H,L,D], k [B,G,S,D], v [B,G,S,E] -> out [B,H,L,E]
//
//   out_i = sum_j exp(s_ij - m_i) drop_ij v_j / sum_j exp(s_ij - m_i),   m_i = max_j s_ij
//
// in one pass over the keys, tile by tile: when a tile raises the maximum from m to m', what was summed
// before is multiplied by exp(m - m') (Milakov and Gimelshein 2018, "Online normalizer calculation for
// softmax"; Dao et al. 2022, "FlashAttention"). Only allowed pairs are ever looked at.
#include "engine/kernels/forward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/forward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which these need.
#include "engine/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// A row's softmax so far. Nothing seen: the maximum is -inf and the sum 0.
template <typename T>
struct RowState {
  T max = -std::numeric_limits<T>::infinity();
  T sum = 0;                                               // of exp(s - max)
  Index chosen = -1;                                       // Argmax, Sample
  double best = -std::numeric_limits<double>::infinity();  // score of the chosen key, Gumbel noise included
  T chosen_score = 0;
};

// One block of queries. Scratch: s and scales [kKeyTile], keys [kKeyTile], acc [kQueryTile, padded E].
template <typename T>
class ForwardBlock {
 public:
  ForwardBlock(const ForwardCall<T>& call, Scratch* scratch)
      : p_(call.problem),
        outputs_(call.outputs),
        score_(p_),
        width_(static_cast<std::size_t>(Padded(p_.E))),
        s_(scratch->Take<T>(kKeyTile + kPad)),
        scales_(scratch->Take<T>(kKeyTile + kPad)),
        acc_(scratch->Take<T>(kQueryTile * width_)),
        keys_(scratch->Take<std::int32_t>(kKeyTile)) {}

  void Run(Index b, Index h, Index i0) {
    Tile tile{b, h, i0, std::min(i0 + kQueryTile, p_.L), 0, 0};
    std::fill(states_, states_ + kQueryTile, RowState<T>());
    std::fill(acc_, acc_ + kQueryTile * width_, T(0));
    if (outputs_.weights) ClearWeights(tile);
    ForEachTile(tile, [&](const Tile& t, TileClass c) HWY_ATTR {
      for (Index i = t.i0; i < t.i1; ++i) AddTile(t, c, i);
    });
    for (Index i = tile.i0; i < tile.i1; ++i) Finish(b, h, i, i - i0);
    if (outputs_.weights) FinishWeights(tile);
  }

 private:
  template <typename F>
  void ForEachTile(Tile tile, const F& f) const {
    for (tile.j0 = 0; tile.j0 < p_.S; tile.j0 = tile.j1) {
      tile.j1 = std::min(tile.j0 + kKeyTile, p_.S);
      const TileClass c = p_.mask->Classify(tile);
      if (c != TileClass::kEmpty) f(tile, c);
    }
  }

  // The row's scores in this tile: s_x; returns how many.
  std::size_t Scores(const Tile& t, TileClass c, Index i) {
    std::size_t n = p_.mask->Keys(t, c, i, keys_);
    if (n == 0) return 0;
    const Index g = p_.KeyHead(t.h);
    const RowPlace place{t.b, t.h, g, i, t.j0};
    const Rows<T> k{RowsOf(p_.k, t.b, g)[t.j0], p_.k.strides[2]};
    const T* a = p_.parameter.data == nullptr ? nullptr : &p_.parameter(t.h, 0);
    SumTerms(score_, RowsOf(p_.q, t.b, t.h)[i], a, k, keys_, n, static_cast<std::size_t>(p_.D), s_);
    n = KeepInside(score_, keys_, n, s_);
    score_.Finish(n, s_);
    AdjustScores(p_, place, keys_, n, s_, static_cast<T*>(nullptr));
    return n;
  }

  void AddTile(const Tile& t, TileClass c, Index i) {
    const std::size_t n = Scores(t, c, i);
    if (n == 0) return;
    RowState<T>& state = states_[i - t.i0];
    T* acc = acc_ + static_cast<std::size_t>(i - t.i0) * width_;
    if (outputs_.weights && p_.soft()) {  // kept until the row's sum is known
      for (std::size_t x = 0; x < n; ++x) (*outputs_.weights)(t.b, t.h, i, t.j0 + keys_[x]) = s_[x];
    }
    if (!p_.soft()) Choose(t, i, n, &state);
    const T max = std::max(state.max, MaxOf(s_, n));
    // While every score is -inf there is no maximum to subtract: exp(-inf) is 0 all the same.
    const T shift = max == -std::numeric_limits<T>::infinity() ? T(0) : max;
    const T shrink = std::exp(state.max - shift);
    state.sum = state.sum * shrink + ExpOf(s_, n, shift, s_);
    state.max = max;
    if (!p_.soft()) return;
    if (shrink != T(1)) Scale(shrink, width_, acc);
    if (p_.dropout.active()) {
      DropoutScales(p_, RowPlace{t.b, t.h, 0, i, t.j0}, keys_, n, scales_);
      for (std::size_t x = 0; x < n; ++x) s_[x] *= scales_[x];
    }
    const Rows<T> v = RowsOf(p_.v, t.b, p_.KeyHead(t.h));
    AddWeighted(s_, Rows<T>{v[t.j0], v.stride}, keys_, n, static_cast<std::size_t>(p_.E), acc);
  }

  // Argmax, Sample: the largest score of the row so far, noise included; a NaN is larger than any number.
  void Choose(const Tile& t, Index i, std::size_t n, RowState<T>* state) const {
    const RandomRow noise(p_.sample_seed, Stream::kGumbel, t.b, t.h, i);
    for (std::size_t x = 0; x < n; ++x) {
      const Index j = t.j0 + keys_[x];
      double s = static_cast<double>(s_[x]);
      if (p_.normalizer == NormalizerKind::kSample) s += noise.Gumbel(j);
      if (s > state->best || (std::isnan(s) && !std::isnan(state->best))) {
        state->best = s;
        state->chosen = j;
        state->chosen_score = s_[x];
      }
    }
  }

  void Finish(Index b, Index h, Index i, Index row) {
    const RowState<T>& state = states_[row];
    T* acc = acc_ + static_cast<std::size_t>(row) * width_;
    const bool sees = state.sum != 0;  // NaN sees
    const T lse = sees ? state.max + std::log(state.sum) : -std::numeric_limits<T>::infinity();
    if (sees && !p_.soft()) TakeChosen(b, h, i, lse, acc);
    const T divisor = p_.soft() ? state.sum : T(1);
    const auto& out = outputs_.out;
    for (Index e = 0; e < p_.E; ++e) out(b, h, i, e) = sees ? acc[e] / divisor : T(0);
    if (outputs_.lse) (*outputs_.lse)(b, h, i) = lse;
    if (p_.soft()) return;
    if (outputs_.index) (*outputs_.index)(b, h, i) = sees ? state.chosen : -1;
    if (outputs_.log_prob) (*outputs_.log_prob)(b, h, i) = sees ? state.chosen_score - lse : T(0);
    if (outputs_.weights && sees) (*outputs_.weights)(b, h, i, state.chosen) = std::isnan(lse) ? lse : T(1);
  }

  // acc = the chosen key's value, NaN where the scores hold one
  void TakeChosen(Index b, Index h, Index i, T lse, T* acc) {
    const Index j = states_[i % kQueryTile].chosen;
    T weight = std::isnan(lse) ? lse : T(1);
    if (p_.dropout.active()) {
      const std::int32_t here = 0;
      DropoutScales(p_, RowPlace{b, h, 0, i, j}, &here, 1, scales_);
      weight *= scales_[0];
    }
    const T* v = RowsOf(p_.v, b, p_.KeyHead(h))[j];
    for (Index e = 0; e < p_.E; ++e) acc[e] = weight * v[e];
  }

  void ClearWeights(const Tile& t) const {
    for (Index i = t.i0; i < t.i1; ++i) {
      for (Index j = 0; j < p_.S; ++j) (*outputs_.weights)(t.b, t.h, i, j) = T(0);
    }
  }

  // From the scores that AddTile left in the weights to the weights.
  void FinishWeights(const Tile& block) {
    if (!p_.soft()) return;
    ForEachTile(block, [&](const Tile& t, TileClass c) HWY_ATTR {
      for (Index i = t.i0; i < t.i1; ++i) {
        const std::size_t n = Scores(t, c, i);  // for the keys that are inside
        const RowState<T>& state = states_[i - t.i0];
        T* row = &(*outputs_.weights)(t.b, t.h, i, t.j0);
        const Index stride = outputs_.weights->strides[3];
        for (std::size_t x = 0; x < n; ++x) s_[x] = row[keys_[x] * stride];
        ExpOf(s_, n, state.sum == 0 ? T(0) : state.max, s_);
        const T divisor = state.sum == 0 ? T(1) : state.sum;
        for (std::size_t x = 0; x < n; ++x) row[keys_[x] * stride] = s_[x] / divisor;
      }
    });
  }

  const Problem<T>& p_;
  const AttentionOutputs<T>& outputs_;
  CompactScore<T> score_;
  std::size_t width_;
  T* s_;
  T* scales_;
  T* acc_;
  std::int32_t* keys_;
  RowState<T> states_[kQueryTile];
};

template <typename T>
HWY_INLINE void ForwardRangeOf(const ForwardCall<T>& call, Index first, Index last) {
  const Problem<T>& p = call.problem;
  Scratch scratch;
  ForwardBlock block(call, &scratch);
  for (Index task = first; task < last; ++task) {
    const Index head = task / call.query_blocks();
    block.Run(head / p.H, head % p.H, task % call.query_blocks() * kQueryTile);
  }
}

void ForwardRangeF32(const ForwardCall<float>& call, Index first, Index last) {
  ForwardRangeOf(call, first, last);
}
void ForwardRangeF64(const ForwardCall<double>& call, Index first, Index last) {
  ForwardRangeOf(call, first, last);
}

template <typename T>
HWY_INLINE void RowNormsOf(const TensorView<const T, 4>& t, T* norms) {
  for (Index a = 0; a < t.shape[0]; ++a) {
    for (Index n = 0; n < t.shape[1]; ++n) {
      const Rows<T> rows = RowsOf(t, a, n);
      for (Index m = 0; m < t.shape[2]; ++m) {
        *norms++ = std::sqrt(Dot(rows[m], rows[m], static_cast<std::size_t>(t.shape[3])));
      }
    }
  }
}

void RowNormsF32(const TensorView<const float, 4>& rows, float* norms) { RowNormsOf(rows, norms); }
void RowNormsF64(const TensorView<const double, 4>& rows, double* norms) { RowNormsOf(rows, norms); }

const char* TargetHere() { return hwy::TargetName(HWY_TARGET); }

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::engine {

HWY_EXPORT(ForwardRangeF32);
HWY_EXPORT(ForwardRangeF64);
HWY_EXPORT(RowNormsF32);
HWY_EXPORT(RowNormsF64);
HWY_EXPORT(TargetHere);

template <>
void ForwardRange(const ForwardCall<float>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(ForwardRangeF32)(call, first, last);
}
template <>
void ForwardRange(const ForwardCall<double>& call, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(ForwardRangeF64)(call, first, last);
}
template <>
void RowNorms(const TensorView<const float, 4>& rows, float* norms) {
  HWY_DYNAMIC_DISPATCH(RowNormsF32)(rows, norms);
}
template <>
void RowNorms(const TensorView<const double, 4>& rows, double* norms) {
  HWY_DYNAMIC_DISPATCH(RowNormsF64)(rows, norms);
}

const char* KernelTarget() { return HWY_DYNAMIC_DISPATCH(TargetHere)(); }

}  // namespace regard::engine
#endif  // HWY_ONCE
