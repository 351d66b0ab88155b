// Backward, for compact kernels: dout [B,H,L,E] (and dlse, dweights, dlog_prob) -> dq [B,H,L,D],
// dk [B,G,S,D], dv [B,G,S,E], ...
//
//   p_ij  = exp(s_ij - lse_i)
//   dp_ij = drop_ij dout_i·v_j + dweights_ij
//   ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij + dlse_i)          sum_j p_ij drop_ij dout_i·v_j = dout_i·out_i
//   dv_j  = sum_i p_ij drop_ij dout_i
//   dq_i  = sum_j ds_ij ds/dq,   dk_j = sum_i ds_ij ds/dk      (Dao et al. 2022, "FlashAttention", appendix
//   B)
//
// The row term, dlse_i - sum_j p_ij dp_ij, is taken from the row where all its keys are in one tile, and from
// dout_i·out_i, in a pass of its own, where they are not.
//
// Scores are computed again from q and k. A pass owns what it writes, so nothing is shared between tasks:
// queries are the outer loop for dq, keys for dk and dv.
#include "engine/kernels/backward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which these need.
#include "engine/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// The pairs of one task, and what is wanted of them.
struct Region {
  Index b0, b1, h0, h1, i0, i1, j0, j1;
  bool row_term = false, query = false, key = false, bias = false;
};

// The loops of one task. Scratch arrays over x belong to one query in one tile.
template <typename T>
class BackwardBlock {
 public:
  BackwardBlock(const BackwardCall<T>& call, Index chunk, Scratch* scratch)
      : p_(call.problem),
        up_(call.upstream),
        grads_(call.gradients),
        call_(call),
        score_(p_),
        d_width_(static_cast<std::size_t>(Padded(p_.D))),
        e_width_(static_cast<std::size_t>(Padded(p_.E))),
        keys_(scratch->Take<std::int32_t>(kKeyTile)) {
    for (T** row : {&s_, &squares_, &capped_, &dp_, &scales_, &c_}) {
      *row = scratch->Take<T>(kKeyTile + kPad);
    }
    dq_ = scratch->Take<T>(kQueryTile * d_width_);
    dk_ = scratch->Take<T>(kKeyTile * d_width_);
    dv_ = scratch->Take<T>(kKeyTile * e_width_);
    da_ = scratch->Take<T>(d_width_);
    if (grads_.dbias) dbias_ = scratch->Take<double>(kQueryTile * kKeyTile);
    if (call.parameter_sums != nullptr) {
      parameter_sums_ = call.parameter_sums + chunk * call.parameter_heads * p_.D;
    }
  }

  void Run(const Region& region) {
    r_ = region;
    if (r_.key) {
      std::fill(dk_, dk_ + kKeyTile * d_width_, T(0));
      std::fill(dv_, dv_ + kKeyTile * e_width_, T(0));
    }
    if (r_.bias) std::fill(dbias_, dbias_ + kQueryTile * kKeyTile, 0.0);
    for (Index b = r_.b0; b < r_.b1; ++b) {
      for (Index h = r_.h0; h < r_.h1; ++h) {
        std::fill(da_, da_ + d_width_, T(0));
        for (Index i0 = r_.i0; i0 < r_.i1; i0 += kQueryTile) RunQueries(b, h, i0);
        if (r_.query && parameter_sums_ != nullptr) AddParameter(h);
      }
    }
    if (r_.key && grads_.dk) Write(*grads_.dk, r_.b0, p_.KeyHead(r_.h0), r_.j0, r_.j1, dk_, d_width_);
    if (r_.key && grads_.dv) Write(*grads_.dv, r_.b0, p_.KeyHead(r_.h0), r_.j0, r_.j1, dv_, e_width_);
    if (r_.bias) WriteBias();
  }

 private:
  void RunQueries(Index b, Index h, Index i0) {
    Tile t{b, h, i0, std::min(i0 + kQueryTile, r_.i1), 0, 0};
    if (r_.query) std::fill(dq_, dq_ + kQueryTile * d_width_, T(0));
    if (r_.row_term) StartRowTerms(t);
    // Where only the parts of `out` and `lse` are asked for, the row terms need no look at the pairs.
    const bool pairs = !r_.row_term || up_.dweights;
    for (t.j0 = r_.j0; pairs && t.j0 < r_.j1; t.j0 = t.j1) {
      t.j1 = std::min(t.j0 + kKeyTile, r_.j1);
      const TileClass c = p_.mask->Classify(t);
      if (c == TileClass::kEmpty) continue;
      for (Index i = t.i0; i < t.i1; ++i) RunRow(t, c, i);
    }
    if (r_.row_term && pairs) FinishRowTerms(t);
    if (r_.query && grads_.dq) Write(*grads_.dq, b, h, t.i0, t.i1, dq_, d_width_);
  }

  T& RowTerm(Index b, Index h, Index i) const { return call_.row_term[(b * p_.H + h) * p_.L + i]; }

  // dlse_i - dout_i·out_i; a row that sees nothing is left out, whatever stands in its dout
  void StartRowTerms(const Tile& t) {
    std::fill(p_sums_, p_sums_ + kQueryTile, T(0));
    std::fill(p_dweights_, p_dweights_ + kQueryTile, T(0));
    for (Index i = t.i0; i < t.i1; ++i) {
      T& term = RowTerm(t.b, t.h, i) = T(0);
      if (up_.lse(t.b, t.h, i) == -std::numeric_limits<T>::infinity()) continue;
      if (up_.dlse) term += (*up_.dlse)(t.b, t.h, i);
      if (!up_.dout) continue;
      term -=
          Dot(RowsOf(*up_.dout, t.b, t.h)[i], RowsOf(up_.out, t.b, t.h)[i], static_cast<std::size_t>(p_.E));
    }
  }

  // - sum_j p_ij dweights_ij, divided by the sum of p, which is not quite 1: lse is rounded
  void FinishRowTerms(const Tile& t) const {
    for (Index i = t.i0; i < t.i1; ++i) {
      if (p_sums_[i - t.i0] != 0) RowTerm(t.b, t.h, i) -= p_dweights_[i - t.i0] / p_sums_[i - t.i0];
    }
  }

  void RunRow(const Tile& t, TileClass c, Index i) {
    const T lse = up_.lse(t.b, t.h, i);
    if (lse == -std::numeric_limits<T>::infinity()) return;
    std::size_t n = p_.mask->Keys(t, c, i, keys_);
    if (n == 0) return;
    const Index g = p_.KeyHead(t.h);
    const RowPlace place{t.b, t.h, g, i, t.j0};
    const T* q = RowsOf(p_.q, t.b, t.h)[i];
    const T* a = p_.parameter.data == nullptr ? nullptr : &p_.parameter(t.h, 0);
    const Rows<T> k{RowsOf(p_.k, t.b, g)[t.j0], p_.k.strides[2]};
    SumTerms(score_, q, a, k, keys_, n, static_cast<std::size_t>(p_.D), s_);
    n = KeepInside(score_, keys_, n, s_);
    if (n == 0) return;
    std::copy(s_, s_ + n, squares_);
    score_.Finish(n, s_);
    AdjustScores(p_, place, keys_, n, s_, capped_);
    const T sum = ExpOf(s_, n, lse, s_);  // p_x
    if (call_.row_in_tile()) {
      for (std::size_t x = 0; x < n; ++x) s_[x] /= sum;  // which is not quite 1: lse is rounded
    }

    if (p_.soft()) {
      SoftGradient(place, n);
    } else {
      HardGradient(place, n);
    }
    if (r_.bias) AddBias(place, n);
    if (!r_.query && !r_.key) return;
    if (p_.softcap) {  // d/ds c tanh(s / c) = 1 - tanh²(s / c)
      for (std::size_t x = 0; x < n; ++x) dp_[x] *= T(1) - capped_[x] * capped_[x];
    }
    score_.Prepare(n, squares_, dp_, c_);
    Differentiate(q, a, k, n, dq_ + static_cast<std::size_t>(i - t.i0) * d_width_);
  }

  // From p to ds (in dp_), and to dv. In the row-term pass, the sums over p instead.
  void SoftGradient(const RowPlace& at, std::size_t n) {
    if (r_.row_term) {
      for (std::size_t x = 0; x < n; ++x) {
        p_sums_[at.i % kQueryTile] += s_[x];
        p_dweights_[at.i % kQueryTile] += s_[x] * DWeight(at, x);
      }
      return;
    }
    std::fill(dp_, dp_ + n, T(0));
    const bool dropout = p_.dropout.active();
    if (up_.dout) {
      const T* dout = RowsOf(*up_.dout, at.b, at.h)[at.i];
      const Rows<T> v = RowsOf(p_.v, at.b, at.g);
      SumTerms(Product<T>(), dout, static_cast<const T*>(nullptr), Rows<T>{v[at.j0], v.stride}, keys_, n,
               static_cast<std::size_t>(p_.E), dp_);
      if (dropout) {
        DropoutScales(p_, at, keys_, n, scales_);
        for (std::size_t x = 0; x < n; ++x) dp_[x] *= scales_[x];
      }
      if (r_.key) {
        for (std::size_t x = 0; x < n; ++x) c_[x] = dropout ? s_[x] * scales_[x] : s_[x];
        AddValues(dout, n);
      }
    }
    if (up_.dweights) {
      for (std::size_t x = 0; x < n; ++x) dp_[x] += DWeight(at, x);
    }
    const T term = call_.row_in_tile() ? TermOfRow(at, n) : RowTerm(at.b, at.h, at.i);
    for (std::size_t x = 0; x < n; ++x) dp_[x] = s_[x] * (dp_[x] + term);
  }

  // The row term from the row itself.
  T TermOfRow(const RowPlace& at, std::size_t n) const {
    const T dlse = up_.dlse ? (*up_.dlse)(at.b, at.h, at.i) : T(0);
    return dlse - Dot(s_, dp_, n);
  }

  T DWeight(const RowPlace& at, std::size_t x) const {
    return (*up_.dweights)(at.b, at.h, at.i, at.j0 + keys_[x]);
  }

  // Argmax, Sample: dout goes to the chosen key's value, dlse and dlog_prob to the scores.
  void HardGradient(const RowPlace& at, std::size_t n) {
    const T dlse = up_.dlse ? (*up_.dlse)(at.b, at.h, at.i) : T(0);
    const T dlog_prob = up_.dlog_prob ? (*up_.dlog_prob)(at.b, at.h, at.i) : T(0);
    const Index chosen = (*up_.index)(at.b, at.h, at.i);
    const T lse = up_.lse(at.b, at.h, at.i);
    for (std::size_t x = 0; x < n; ++x) {
      const bool here = at.j0 + keys_[x] == chosen;
      dp_[x] = s_[x] * (dlse - dlog_prob) + (here ? dlog_prob : T(0));
      c_[x] = here ? (std::isnan(lse) ? lse : T(1)) : T(0);
      if (!here || !r_.key || !up_.dout) continue;
      if (p_.dropout.active()) {
        DropoutScales(p_, at, keys_ + x, 1, scales_);
        c_[x] *= scales_[0];
      }
      const T* dout = RowsOf(*up_.dout, at.b, at.h)[at.i];
      T* dv = dv_ + static_cast<std::size_t>(keys_[x]) * e_width_;
      for (Index e = 0; e < p_.E; ++e) dv[e] += c_[x] * dout[e];
    }
  }

  // dv_x += c_x dout
  HWY_INLINE void AddValues(const T* dout, std::size_t n) {
    const Lanes<T> d;
    const auto E = static_cast<std::size_t>(p_.E);
    for (std::size_t at = 0; at < E; at += hn::Lanes(d)) {
      const auto g = LoadUpTo(dout, at, E);
      for (std::size_t x = 0; x < n; ++x) {
        T* dv = dv_ + static_cast<std::size_t>(keys_[x]) * e_width_ + at;
        hn::Store(hn::MulAdd(hn::Set(d, c_[x]), g, hn::Load(d, dv)), d, dv);
      }
    }
  }

  // dq (this row's), dk and the parameter's gradient += c_x times the derivative of s_x
  HWY_INLINE void Differentiate(const T* q, const T* a, Rows<T> k, std::size_t n, T* dq) {
    const Lanes<T> d;
    const auto zero = hn::Zero(d);
    const auto D = static_cast<std::size_t>(p_.D);
    for (std::size_t at = 0; at < D; at += hn::Lanes(d)) {
      const auto qv = LoadUpTo(q, at, D);
      const auto av = a == nullptr ? zero : LoadUpTo(a, at, D);
      auto dqv = r_.query ? hn::Load(d, dq + at) : zero;
      auto dav = r_.query ? hn::Load(d, da_ + at) : zero;
      for (std::size_t x = 0; x < n; ++x) {
        const auto kv = LoadUpTo(k[keys_[x]], at, D);
        const auto c = hn::Set(d, c_[x]);
        T* dk = dk_ + static_cast<std::size_t>(keys_[x]) * d_width_ + at;
        auto dkv = r_.key ? hn::Load(d, dk) : zero;
        score_.Derivative(qv, kv, av, c, dqv, dkv, dav);
        if (r_.key) hn::Store(dkv, d, dk);
      }
      if (!r_.query) continue;
      hn::Store(dqv, d, dq + at);
      hn::Store(dav, d, da_ + at);
    }
  }

  void AddParameter(Index h) {
    T* sums = parameter_sums_ + (call_.parameter_heads == 1 ? 0 : h) * p_.D;
    for (Index at = 0; at < p_.D; ++at) sums[at] += da_[at];
  }

  // Rows r0 .. r1 - 1 of a gradient, from scratch.
  void Write(const TensorView<T, 4>& to, Index a, Index head, Index r0, Index r1, const T* from,
             std::size_t width) const {
    if (width == 0) return;  // perhaps no memory
    for (Index r = r0; r < r1; ++r, from += width) {
      T* row = to.data + a * to.strides[0] + head * to.strides[1] + r * to.strides[2];
      const Index stride = to.strides[3];
      for (Index at = 0; at < to.shape[3]; ++at) {
        row[at * stride] = grads_.accumulate ? row[at * stride] + from[at] : from[at];
      }
    }
  }

  // The element of dbias_ for the pair (i, j): its place in the region, 0 in a dimension of size 1.
  double& BiasSum(Index i, Index j) const {
    const auto& shape = grads_.dbias->shape;
    return dbias_[(shape[2] == 1 ? 0 : i - r_.i0) * kKeyTile + (shape[3] == 1 ? 0 : j - r_.j0)];
  }

  void AddBias(const RowPlace& at, std::size_t n) {
    for (std::size_t x = 0; x < n; ++x) BiasSum(at.i, at.j0 + keys_[x]) += static_cast<double>(dp_[x]);
  }

  void WriteBias() const {
    const auto& dbias = *grads_.dbias;
    const auto& shape = dbias.shape;
    for (Index i = r_.i0; i < (shape[2] == 1 ? r_.i0 + 1 : r_.i1); ++i) {
      for (Index j = r_.j0; j < (shape[3] == 1 ? r_.j0 + 1 : r_.j1); ++j) {
        T& to = dbias(shape[0] == 1 ? 0 : r_.b0, shape[1] == 1 ? 0 : r_.h0, shape[2] == 1 ? 0 : i,
                      shape[3] == 1 ? 0 : j);
        const T sum = static_cast<T>(BiasSum(i, j));
        to = grads_.accumulate ? to + sum : sum;
      }
    }
  }

  const Problem<T>& p_;
  const AttentionUpstream<T>& up_;
  const AttentionGradients<T>& grads_;
  const BackwardCall<T>& call_;
  CompactScore<T> score_;
  std::size_t d_width_, e_width_;
  std::int32_t* keys_;
  T *s_, *squares_, *capped_, *dp_, *scales_, *c_;
  T *dq_, *dk_, *dv_, *da_;
  T p_sums_[kQueryTile], p_dweights_[kQueryTile];
  double* dbias_ = nullptr;
  T* parameter_sums_ = nullptr;
  Region r_;
};

template <typename T>
HWY_INLINE Region RegionOf(const BackwardCall<T>& call, BackwardPass pass, Index task) {
  const Problem<T>& p = call.problem;
  Region r{0, p.B, 0, p.H, 0, p.L, 0, p.S};
  const auto keep_one = [](Index n, Index* begin, Index* end) HWY_ATTR {
    *begin = n;
    *end = n + 1;
  };
  const auto keep_block = [](Index n, Index block, Index* begin, Index* end) HWY_ATTR {
    *begin = n * block;
    *end = std::min(*begin + block, *end);
  };
  const auto keep_key_head = [&](Index head) HWY_ATTR {
    keep_one(head / p.G, &r.b0, &r.b1);
    keep_block(head % p.G, p.group, &r.h0, &r.h1);
    r.key = true;
  };
  switch (pass) {
    case BackwardPass::kRowTerm:
    case BackwardPass::kQuery: {
      const Index head = task / call.query_blocks();
      keep_one(head / p.H, &r.b0, &r.b1);
      keep_one(head % p.H, &r.h0, &r.h1);
      keep_block(task % call.query_blocks(), kQueryTile, &r.i0, &r.i1);
      (pass == BackwardPass::kRowTerm ? r.row_term : r.query) = true;
      break;
    }
    case BackwardPass::kKey:
      keep_key_head(task / call.key_blocks());
      keep_block(task % call.key_blocks(), kKeyTile, &r.j0, &r.j1);
      break;
    case BackwardPass::kBoth:
      keep_key_head(task);
      r.query = true;
      break;
    case BackwardPass::kBias: {
      const auto& shape = call.gradients.dbias->shape;
      const Index blocks[4] = {shape[0], shape[1], CeilDiv(shape[2], kQueryTile),
                               CeilDiv(shape[3], kKeyTile)};
      if (shape[3] != 1) keep_block(task % blocks[3], kKeyTile, &r.j0, &r.j1);
      task /= blocks[3];
      if (shape[2] != 1) keep_block(task % blocks[2], kQueryTile, &r.i0, &r.i1);
      task /= blocks[2];
      if (shape[1] != 1) keep_one(task % blocks[1], &r.h0, &r.h1);
      if (shape[0] != 1) keep_one(task / blocks[1], &r.b0, &r.b1);
      r.bias = true;
      break;
    }
  }
  return r;
}

template <typename T>
HWY_INLINE void BackwardRangeOf(const BackwardCall<T>& call, BackwardPass pass, Index chunk, Index first,
                                Index last) {
  Scratch scratch;
  BackwardBlock block(call, chunk, &scratch);
  for (Index task = first; task < last; ++task) block.Run(RegionOf(call, pass, task));
}

void BackwardRangeF32(const BackwardCall<float>& call, BackwardPass pass, Index chunk, Index first,
                      Index last) {
  BackwardRangeOf(call, pass, chunk, first, last);
}
void BackwardRangeF64(const BackwardCall<double>& call, BackwardPass pass, Index chunk, Index first,
                      Index last) {
  BackwardRangeOf(call, pass, chunk, first, last);
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::engine {

HWY_EXPORT(BackwardRangeF32);
HWY_EXPORT(BackwardRangeF64);

template <>
void BackwardRange(const BackwardCall<float>& call, BackwardPass pass, Index chunk, Index first, Index last) {
  HWY_DYNAMIC_DISPATCH(BackwardRangeF32)(call, pass, chunk, first, last);
}
template <>
void BackwardRange(const BackwardCall<double>& call, BackwardPass pass, Index chunk, Index first,
                   Index last) {
  HWY_DYNAMIC_DISPATCH(BackwardRangeF64)(call, pass, chunk, first, last);
}

}  // namespace regard::engine
#endif  // HWY_ONCE
