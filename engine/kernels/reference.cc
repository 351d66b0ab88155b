#include "engine/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "engine/kernels/compact_reference.h"
#include "engine/policies/random.h"

namespace regard::engine {
namespace {

using Index = std::int64_t;

// The value of a tensor whose dimensions of size 1 stand for any index.
template <typename T>
T Broadcast(const TensorView<const T, 4>& t, Index a, Index b, Index c, Index d) {
  return t(t.shape[0] == 1 ? 0 : a, t.shape[1] == 1 ? 0 : b, t.shape[2] == 1 ? 0 : c,
           t.shape[3] == 1 ? 0 : d);
}

Index Place(Corner corner, Index i, Index L, Index S) { return corner == Corner::kTopLeft ? i : i + S - L; }

bool Allowed(const Mask& m, Index b, Index h, Index i, Index j, Index L, Index S) {
  if (m.causal && j > Place(m.causal->corner, i, L, S)) return false;
  if (m.window) {
    const Index offset = j - Place(m.window->corner, i, L, S);
    if (m.window->left && offset < -*m.window->left) return false;
    if (m.window->right && offset > *m.window->right) return false;
  }
  if (m.lengths) {
    const auto& n = m.lengths->lengths;
    if (j >= n(b, n.shape[1] == 1 ? 0 : i)) return false;
  }
  if (m.segments) {
    const auto& sq = m.segments->query;
    const auto& sk = m.segments->key;
    if (sq(sq.shape[0] == 1 ? 0 : b, i) != sk(sk.shape[0] == 1 ? 0 : b, j)) return false;
  }
  if (m.blocks) {
    const auto& map = m.blocks->map;
    if (!map(map.shape[0] == 1 ? 0 : b, map.shape[1] == 1 ? 0 : h, i / m.blocks->query_size,
             j / m.blocks->key_size)) {
      return false;
    }
  }
  if (m.keep && !Broadcast(m.keep->keep, b, h, i, j)) return false;
  if (m.exclude_self && i == j) return false;
  return true;
}

// One pair of query and key, and the derivative of its score.
template <typename C, typename T>
struct Pair {
  const AttentionOptions<SumType<T>>& options;
  const AttentionInputs<T>& in;
  Index b, h, g, i, j;

  Index D() const { return in.q.shape[3]; }
  C q(Index d) const { return static_cast<C>(in.q(b, h, i, d)); }
  C k(Index d) const { return static_cast<C>(in.k(b, g, j, d)); }

  // sum_d f(d)
  template <typename F>
  C Sum(const F& f) const {
    C sum = 0;
    for (Index d = 0; d < D(); ++d) sum += f(d);
    return sum;
  }

  // s before softcap, bias and ALiBi
  C Raw() const {
    return std::visit([&](const auto& score) { return RawOf(score); }, options.score);
  }
  C RawOf(const ScaledDot&) const { return D() == 0 ? C(0) : Product() / std::sqrt(static_cast<C>(D())); }
  C RawOf(const Dot& score) const { return static_cast<C>(score.scale) * Product(); }
  C RawOf(const Cosine& score) const {
    return static_cast<C>(score.scale) * Product() /
           std::max(QueryNorm() * KeyNorm(), static_cast<C>(score.eps));
  }
  C RawOf(const Additive<SumType<T>>& score) const {
    return Sum([&](Index d) { return W(score, d) * std::tanh(q(d) + k(d)); });
  }
  C RawOf(const Gaussian<SumType<T>>& score) const {
    return C(-0.5) * Sum([&](Index d) {
             const C z = A(score, d) * (q(d) - k(d));
             return z * z;
           });
  }

  C RawOf(const Compact<SumType<T>>& score) const { return LogOf(score.kernel, SquaredDistance(score)); }
  // A caller's formula cannot be asked in C: a test gives the built-in score that it repeats.
  C RawOf(const CustomScore<SumType<T>>&) const { return std::numeric_limits<C>::quiet_NaN(); }

  // Outside of a compact kernel there is no pair.
  bool Exists() const {
    const auto* compact = std::get_if<Compact<SumType<T>>>(&options.score);
    if (compact == nullptr) return true;
    return !IsOutside(compact->kernel, SquaredDistance(*compact));
  }

  // u²
  C SquaredDistance(const Compact<SumType<T>>& score) const {
    return Sum([&](Index d) {
      const C z = A(score, d) * (q(d) - k(d));
      return z * z;
    });
  }
  C Product() const {
    return Sum([&](Index d) { return q(d) * k(d); });
  }
  C QueryNorm() const {
    return std::sqrt(Sum([&](Index d) { return q(d) * q(d); }));
  }
  C KeyNorm() const {
    return std::sqrt(Sum([&](Index d) { return k(d) * k(d); }));
  }
  Index Head(const Additive<SumType<T>>& score) const { return score.w.shape[0] == 1 ? 0 : h; }
  C W(const Additive<SumType<T>>& score, Index d) const { return static_cast<C>(score.w(Head(score), d)); }
  template <typename WithPrecision>
  Index Dimension(const WithPrecision& score, Index d) const {
    return score.precision.shape[0] == 1 ? 0 : d;
  }
  template <typename WithPrecision>
  C A(const WithPrecision& score, Index d) const {
    return static_cast<C>(score.precision(Dimension(score, d)));
  }

  // dq, dk (D each), dw [.., D] and dprecision += ds times the derivative of s
  void Differentiate(C ds, C* dq, C* dk, ReferenceGradients<C>* grads) const {
    std::visit([&](const auto& score) { DifferentiateOf(score, ds, dq, dk, grads); }, options.score);
  }
  void ProductRule(C ds, C* dq, C* dk) const {
    for (Index d = 0; d < D(); ++d) {
      dq[d] += ds * k(d);
      dk[d] += ds * q(d);
    }
  }
  void DifferentiateOf(const ScaledDot&, C ds, C* dq, C* dk, ReferenceGradients<C>*) const {
    ProductRule(ds / std::sqrt(static_cast<C>(D())), dq, dk);
  }
  void DifferentiateOf(const Dot& score, C ds, C* dq, C* dk, ReferenceGradients<C>*) const {
    ProductRule(ds * static_cast<C>(score.scale), dq, dk);
  }
  void DifferentiateOf(const Cosine& score, C ds, C* dq, C* dk, ReferenceGradients<C>*) const {
    const C eps = static_cast<C>(score.eps), scale = static_cast<C>(score.scale);
    const C nq = QueryNorm(), nk = KeyNorm(), n = nq * nk;
    ProductRule(ds * scale / std::max(n, eps), dq, dk);
    if (!(n > eps)) return;  // the denominator is the constant eps
    const C s = scale * Product() / n;
    for (Index d = 0; d < D(); ++d) {
      dq[d] -= ds * s * q(d) / (nq * nq);
      dk[d] -= ds * s * k(d) / (nk * nk);
    }
  }
  void DifferentiateOf(const Additive<SumType<T>>& score, C ds, C* dq, C* dk,
                       ReferenceGradients<C>* grads) const {
    for (Index d = 0; d < D(); ++d) {
      const C t = std::tanh(q(d) + k(d));
      const C dz = ds * W(score, d) * (1 - t * t);
      dq[d] += dz;
      dk[d] += dz;
      grads->dw[static_cast<std::size_t>(Head(score) * D() + d)] += ds * t;
    }
  }
  void DifferentiateOf(const Gaussian<SumType<T>>& score, C ds, C* dq, C* dk,
                       ReferenceGradients<C>* grads) const {
    for (Index d = 0; d < D(); ++d) {
      const C a = A(score, d), z = q(d) - k(d);
      dq[d] -= ds * a * a * z;
      dk[d] += ds * a * a * z;
      grads->dprecision[static_cast<std::size_t>(Dimension(score, d))] -= ds * a * z * z;
    }
  }
  void DifferentiateOf(const CustomScore<SumType<T>>&, C, C*, C*, ReferenceGradients<C>*) const {}
  void DifferentiateOf(const Compact<SumType<T>>& score, C ds, C* dq, C* dk,
                       ReferenceGradients<C>* grads) const {
    const C u2 = SquaredDistance(score), u = std::sqrt(u2);
    if (u == 0) return;
    const C du = ds * SlopeOfLog(score.kernel, u2);
    for (Index d = 0; d < D(); ++d) {
      const C a = A(score, d), z = q(d) - k(d);
      dq[d] += du * a * a * z / u;
      dk[d] -= du * a * a * z / u;
      grads->dprecision[static_cast<std::size_t>(Dimension(score, d))] += du * a * z * z / u;
    }
  }
};

// One query: the keys it sees, and every quantity of the formula, key by key.
template <typename C>
struct Row {
  std::vector<Index> keys;
  std::vector<C> raw, s, p, drop;  // drop: 0 or 1 / (1 - probability)
  C lse = -std::numeric_limits<C>::infinity();
  Index chosen = -1;  // position in keys (Argmax, Sample)
  bool empty() const { return keys.empty(); }
};

template <typename C, typename T>
C Score(const Pair<C, T>& pair, C raw) {
  const AttentionOptions<SumType<T>>& o = pair.options;
  C s = raw;
  if (o.softcap) s = static_cast<C>(*o.softcap) * std::tanh(s / static_cast<C>(*o.softcap));
  if (o.bias) s += static_cast<C>(Broadcast(*o.bias, pair.b, pair.h, pair.i, pair.j));
  if (o.alibi) {
    const Index place = Place(o.alibi->corner, pair.i, pair.in.q.shape[2], pair.in.k.shape[2]);
    s -= static_cast<C>(o.alibi->slopes(pair.h)) * static_cast<C>(std::abs(place - pair.j));
  }
  return s;
}

// Position of the largest; a NaN counts as larger than any number.
template <typename Values>
Index Largest(const Values& values) {
  std::size_t best = 0;
  for (std::size_t n = 1; n < values.size(); ++n) {
    if (values[n] > values[best] || (std::isnan(values[n]) && !std::isnan(values[best]))) best = n;
  }
  return static_cast<Index>(best);
}

template <typename C>
void Normalise(Row<C>* row) {
  const C m = row->s[static_cast<std::size_t>(Largest(row->s))];
  if (m == -std::numeric_limits<C>::infinity()) {  // no key with a score above -inf: as if none were allowed
    *row = Row<C>();
    return;
  }
  C sum = 0;
  for (C s : row->s) sum += std::exp(s - m);
  for (C s : row->s) row->p.push_back(std::exp(s - m) / sum);
  row->lse = m + std::log(sum);
}

template <typename C, typename T>
Row<C> MakeRow(const AttentionOptions<SumType<T>>& o, const AttentionInputs<T>& in, Index b, Index h,
               Index i) {
  const Index L = in.q.shape[2], S = in.k.shape[2], G = in.k.shape[1];
  Pair<C, T> pair{o, in, b, h, h / (in.q.shape[1] / G), i, 0};
  Row<C> row;
  const DropoutRule dropout(o.dropout.probability);
  const RandomRow random(o.dropout.seed, Stream::kDropout, b, h, i);
  for (Index j = 0; j < S; ++j) {
    if (!Allowed(o.mask, b, h, i, j, L, S)) continue;
    pair.j = j;
    if (!pair.Exists()) continue;
    row.keys.push_back(j);
    row.raw.push_back(pair.Raw());
    row.s.push_back(Score(pair, row.raw.back()));
    row.drop.push_back(dropout.Keeps(random.Bits(j)) ? static_cast<C>(dropout.scale()) : C(0));
  }
  if (row.empty()) return row;
  Normalise(&row);
  if (row.empty() || std::holds_alternative<Softmax>(o.normalizer)) return row;
  if (const Sample* sample = std::get_if<Sample>(&o.normalizer)) {
    const RandomRow noise(sample->seed, Stream::kGumbel, b, h, i);
    std::vector<double> noisy;
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      noisy.push_back(static_cast<double>(row.s[n]) + noise.Gumbel(row.keys[n]));
    }
    row.chosen = Largest(noisy);
  } else {
    row.chosen = Largest(row.s);
  }
  return row;
}

// The weight of position n: p, or 1 for the chosen key alone (NaN where the scores hold one).
template <typename C>
C Weight(const Row<C>& row, std::size_t n) {
  if (row.chosen < 0) return row.p[n];
  if (static_cast<Index>(n) != row.chosen) return 0;
  return std::isnan(row.lse) ? row.lse : C(1);
}

template <typename C, typename T, typename F>
void ForEachRow(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& in, const F& f) {
  const auto [B, H, L, D] = in.q.shape;
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      for (Index i = 0; i < L; ++i) {
        f(b, h, i, static_cast<std::size_t>((b * H + h) * L + i), MakeRow<C>(options, in, b, h, i));
      }
    }
  }
}

// dL/ds of every key of the row
template <typename C, typename T>
std::vector<C> ScoreGradient(const Row<C>& row, const std::vector<C>& dp, C dlse, C dlog_prob) {
  std::vector<C> ds(row.keys.size());
  C mean = 0;  // sum_j p_j dp_j
  if (row.chosen < 0) {
    for (std::size_t n = 0; n < ds.size(); ++n) mean += row.p[n] * dp[n];
  }
  for (std::size_t n = 0; n < ds.size(); ++n) {
    if (row.chosen < 0) ds[n] = row.p[n] * (dp[n] - mean);
    ds[n] += row.p[n] * dlse;
    ds[n] += dlog_prob * ((static_cast<Index>(n) == row.chosen ? C(1) : C(0)) - row.p[n]);
  }
  return ds;
}

}  // namespace

template <typename C, typename T>
ReferenceOutputs<C> ReferenceForward(const AttentionOptions<SumType<T>>& options,
                                     const AttentionInputs<T>& in) {
  const auto [B, H, L, D] = in.q.shape;
  const Index S = in.k.shape[2], E = in.v.shape[3];
  const auto rows = static_cast<std::size_t>(B * H * L);
  ReferenceOutputs<C> r;
  r.out.assign(rows * static_cast<std::size_t>(E), 0);
  r.lse.assign(rows, 0);
  r.weights.assign(rows * static_cast<std::size_t>(S), 0);
  r.log_prob.assign(rows, 0);
  r.index.assign(rows, -1);
  ForEachRow<C>(options, in, [&](Index b, Index h, Index, std::size_t at, const Row<C>& row) {
    const Index g = h / (in.q.shape[1] / in.k.shape[1]);
    r.lse[at] = row.lse;
    if (row.chosen >= 0) {
      r.index[at] = row.keys[static_cast<std::size_t>(row.chosen)];
      r.log_prob[at] = row.s[static_cast<std::size_t>(row.chosen)] - row.lse;
    }
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const Index j = row.keys[n];
      const C weight = Weight(row, n);
      r.weights[at * static_cast<std::size_t>(in.k.shape[2]) + static_cast<std::size_t>(j)] = weight;
      if (row.chosen >= 0 && static_cast<Index>(n) != row.chosen) continue;
      for (Index e = 0; e < in.v.shape[3]; ++e) {
        r.out[at * static_cast<std::size_t>(in.v.shape[3]) + static_cast<std::size_t>(e)] +=
            weight * row.drop[n] * static_cast<C>(in.v(b, g, j, e));
      }
    }
  });
  return r;
}

template <typename C, typename T>
ReferenceGradients<C> ReferenceBackward(const AttentionOptions<SumType<T>>& options,
                                        const AttentionInputs<T>& in, const AttentionUpstream<T>& up) {
  const auto [B, H, L, D] = in.q.shape;
  const Index width = D, S = in.k.shape[2], G = in.k.shape[1], E = in.v.shape[3];
  ReferenceGradients<C> r;
  r.dq.assign(static_cast<std::size_t>(B * H * L * D), 0);
  r.dk.assign(static_cast<std::size_t>(B * G * S * D), 0);
  r.dv.assign(static_cast<std::size_t>(B * G * S * E), 0);
  if (options.bias) r.dbias.assign(static_cast<std::size_t>(options.bias->size()), 0);
  if (const auto* a = std::get_if<Additive<SumType<T>>>(&options.score)) {
    r.dw.assign(static_cast<std::size_t>(a->w.size()), 0);
  }
  if (const auto* a = std::get_if<Gaussian<SumType<T>>>(&options.score)) {
    r.dprecision.assign(static_cast<std::size_t>(a->precision.size()), 0);
  }
  if (const auto* a = std::get_if<Compact<SumType<T>>>(&options.score)) {
    r.dprecision.assign(static_cast<std::size_t>(a->precision.size()), 0);
  }
  ForEachRow<C>(options, in, [&](Index b, Index h, Index i, std::size_t at, const Row<C>& row) {
    const Index g = h / (in.q.shape[1] / G);
    if (row.empty()) return;
    std::vector<C> dp(row.keys.size(), 0);
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const Index j = row.keys[n];
      if (up.dweights && row.chosen < 0) dp[n] += static_cast<C>((*up.dweights)(b, h, i, j));
      if (!up.dout || (row.chosen >= 0 && static_cast<Index>(n) != row.chosen)) continue;
      for (Index e = 0; e < E; ++e) {
        const C dout = static_cast<C>((*up.dout)(b, h, i, e));
        dp[n] += row.drop[n] * dout * static_cast<C>(in.v(b, g, j, e));
        r.dv[static_cast<std::size_t>(((b * G + g) * S + j) * E + e)] += Weight(row, n) * row.drop[n] * dout;
      }
    }
    const C dlse = up.dlse ? static_cast<C>((*up.dlse)(b, h, i)) : C(0);
    const C dlog_prob = up.dlog_prob ? static_cast<C>((*up.dlog_prob)(b, h, i)) : C(0);
    const std::vector<C> ds = ScoreGradient<C, T>(row, dp, dlse, dlog_prob);
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const Index j = row.keys[n];
      if (options.bias) {
        const auto& shape = options.bias->shape;
        const Index bb = shape[0] == 1 ? 0 : b, hh = shape[1] == 1 ? 0 : h, ii = shape[2] == 1 ? 0 : i,
                    jj = shape[3] == 1 ? 0 : j;
        r.dbias[static_cast<std::size_t>(((bb * shape[1] + hh) * shape[2] + ii) * shape[3] + jj)] += ds[n];
      }
      C draw = ds[n];
      if (options.softcap) {  // d/ds c tanh(s / c) = 1 - tanh²(s / c)
        const C t = std::tanh(row.raw[n] / static_cast<C>(*options.softcap));
        draw *= 1 - t * t;
      }
      const Pair<C, T> pair{options, in, b, h, g, i, j};
      pair.Differentiate(draw, r.dq.data() + at * static_cast<std::size_t>(width),
                         r.dk.data() + ((b * G + g) * S + j) * width, &r);
    }
  });
  return r;
}

#define REGARD_INSTANTIATE(C, Sum, T)                                               \
  template ReferenceOutputs<C> ReferenceForward<C, T>(const AttentionOptions<Sum>&, \
                                                      const AttentionInputs<T>&);   \
  template ReferenceGradients<C> ReferenceBackward<C, T>(                           \
      const AttentionOptions<Sum>&, const AttentionInputs<T>&, const AttentionUpstream<T>&);
REGARD_INSTANTIATE(double, float, float)
REGARD_INSTANTIATE(float, float, float)
REGARD_INSTANTIATE(double, double, double)
REGARD_INSTANTIATE(double, float, BFloat16)
REGARD_INSTANTIATE(float, float, BFloat16)
REGARD_INSTANTIATE(double, float, Float16)
REGARD_INSTANTIATE(float, float, Float16)
#undef REGARD_INSTANTIATE

}  // namespace regard::engine
