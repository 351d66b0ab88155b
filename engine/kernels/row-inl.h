// What the forward and the backward pass do with one query against the keys that it sees in a tile: x runs
// over those n keys, keys[x] is their place in the tile. Arrays over x have room for kPad more elements.
#if defined(REGARD_ENGINE_KERNELS_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_ROW_INL_H_
#undef REGARD_ENGINE_KERNELS_ROW_INL_H_
#else
#define REGARD_ENGINE_KERNELS_ROW_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <limits>

#include "engine/kernels/math-inl.h"
#include "engine/kernels/problem.h"
#include "engine/policies/compact-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// Rows of one head's tensor: row r starts at data + r * stride and is contiguous.
template <typename T>
struct Rows {
  const T* data = nullptr;
  Index stride = 0;
  const T* operator[](Index r) const { return data + r * stride; }
};

template <typename T>
HWY_INLINE Rows<T> RowsOf(const TensorView<const T, 4>& t, Index a, Index b) {
  return {t.data + a * t.strides[0] + b * t.strides[1], t.strides[2]};
}

template <typename T>
HWY_INLINE T SumOf(Vector<T> v) {
  const Lanes<T> d;
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// s_x = sum_d term(q_d, k_xd, a_d). Every key is summed in the same order, so a score has the same bits in
// every tile and pass; four keys at a time keep four sums in flight.
template <typename T, typename Score>
HWY_INLINE void SumTerms(const Score& score, const T* q, const T* a, Rows<T> k, const std::int32_t* keys,
                         std::size_t n, std::size_t D, T* s) {
  const Lanes<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto zero = hn::Zero(d);
  std::size_t x = 0;
  for (; x + 4 <= n; x += 4) {
    const T *k0 = k[keys[x]], *k1 = k[keys[x + 1]], *k2 = k[keys[x + 2]], *k3 = k[keys[x + 3]];
    auto s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    for (std::size_t at = 0; at < D; at += lanes) {
      const auto qv = LoadUpTo(q, at, D);
      const auto av = a == nullptr ? zero : LoadUpTo(a, at, D);
      s0 = score.Term(qv, LoadUpTo(k0, at, D), av, s0);
      s1 = score.Term(qv, LoadUpTo(k1, at, D), av, s1);
      s2 = score.Term(qv, LoadUpTo(k2, at, D), av, s2);
      s3 = score.Term(qv, LoadUpTo(k3, at, D), av, s3);
    }
    s[x] = SumOf<T>(s0);
    s[x + 1] = SumOf<T>(s1);
    s[x + 2] = SumOf<T>(s2);
    s[x + 3] = SumOf<T>(s3);
  }
  for (; x < n; ++x) {
    const T* k0 = k[keys[x]];
    auto s0 = zero;
    for (std::size_t at = 0; at < D; at += lanes) {
      const auto av = a == nullptr ? zero : LoadUpTo(a, at, D);
      s0 = score.Term(LoadUpTo(q, at, D), LoadUpTo(k0, at, D), av, s0);
    }
    s[x] = SumOf<T>(s0);
  }
}

// From sums over d: the keys that the score puts outside leave the list; returns how many stay.
template <typename T>
HWY_INLINE std::size_t KeepInside(const CompactScore<T>& score, std::int32_t* keys, std::size_t n, T* s) {
  std::size_t kept = 0;
  for (std::size_t x = 0; x < n; ++x) {
    keys[kept] = keys[x];
    s[kept] = s[x];
    kept += !score.Outside(s[x]);
  }
  return kept;
}

// q·k, summed as SumTerms does.
template <typename T>
struct Product {
  HWY_INLINE Vector<T> Term(Vector<T> q, Vector<T> k, Vector<T>, Vector<T> sum) const {
    return hn::MulAdd(q, k, sum);
  }
};

template <typename T>
HWY_INLINE T Dot(const T* a, const T* b, std::size_t size) {
  const std::int32_t key = 0;
  T sum;
  SumTerms(Product<T>(), a, static_cast<const T*>(nullptr), Rows<T>{b, 0}, &key, 1, size, &sum);
  return sum;
}

// From raw scores to scores: softcap, bias, ALiBi. `capped` gets tanh(s / c) when there is a softcap and
// somebody asks.
template <typename T>
HWY_INLINE void AdjustScores(const Problem<T>& p, const RowPlace& place, const std::int32_t* keys,
                             std::size_t n, T* s, T* capped) {
  const Lanes<T> d;
  if (p.softcap) {
    const auto c = hn::Set(d, *p.softcap);
    for (std::size_t x = 0; x < n; x += hn::Lanes(d)) {
      const auto t = Tanh<T>(hn::Div(LoadUpTo(s, x, n), c));
      if (capped != nullptr) hn::Store(t, d, capped + x);
      hn::Store(hn::Mul(c, t), d, s + x);
    }
  }
  if (p.bias) {
    const auto& bias = *p.bias;
    const T* row = &bias(place.b, place.h, place.i, place.j0);
    for (std::size_t x = 0; x < n; ++x) s[x] += row[keys[x] * bias.strides[3]];
  }
  if (p.slopes != nullptr) {
    const T slope = p.slopes[place.h * p.slopes_stride];
    const Index i = place.i + p.alibi_shift - place.j0;
    for (std::size_t x = 0; x < n; ++x) {
      s[x] -= slope * static_cast<T>(i < keys[x] ? keys[x] - i : i - keys[x]);
    }
  }
}

// The largest of the scores, -inf for none. Which is returned when one is NaN is open.
template <typename T>
HWY_INLINE T MaxOf(T* s, std::size_t n) {
  const Lanes<T> d;
  const auto none = hn::Set(d, -std::numeric_limits<T>::infinity());
  hn::StoreU(none, d, s + n);
  auto m = none;
  for (std::size_t x = 0; x < n; x += hn::Lanes(d)) m = hn::Max(m, hn::Load(d, s + x));
  return hn::GetLane(hn::MaxOfLanes(d, m));
}

// p_x = exp(s_x - shift); returns their sum. p may be s.
template <typename T>
HWY_INLINE T ExpOf(T* s, std::size_t n, T shift, T* p) {
  const Lanes<T> d;
  hn::StoreU(hn::Set(d, -std::numeric_limits<T>::infinity()), d, s + n);
  const auto shift_v = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  for (std::size_t x = 0; x < n; x += hn::Lanes(d)) {
    const auto e = Exp<T>(hn::Sub(hn::Load(d, s + x), shift_v));
    hn::Store(e, d, p + x);
    sum = hn::Add(sum, e);
  }
  return SumOf<T>(sum);
}

// What the weight of each key is multiplied by: 0 or 1 / (1 - probability).
template <typename T>
HWY_INLINE void DropoutScales(const Problem<T>& p, const RowPlace& place, const std::int32_t* keys,
                              std::size_t n, T* scales) {
  const RandomRow random(p.dropout_seed, Stream::kDropout, place.b, place.h, place.i);
  const T kept = static_cast<T>(p.dropout.scale());
  for (std::size_t x = 0; x < n; ++x) {
    scales[x] = p.dropout.Keeps(random.Bits(place.j0 + keys[x])) ? kept : T(0);
  }
}

// sum_e += sum_x p_x v_xe, sum padded to whole vectors
template <typename T>
HWY_INLINE void AddWeighted(const T* p, Rows<T> v, const std::int32_t* keys, std::size_t n, std::size_t E,
                            T* sum) {
  const Lanes<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t at = 0;
  for (; at + 4 * lanes <= E; at += 4 * lanes) {
    auto s0 = hn::Load(d, sum + at), s1 = hn::Load(d, sum + at + lanes);
    auto s2 = hn::Load(d, sum + at + 2 * lanes), s3 = hn::Load(d, sum + at + 3 * lanes);
    for (std::size_t x = 0; x < n; ++x) {
      const T* row = v[keys[x]] + at;
      const auto px = hn::Set(d, p[x]);
      s0 = hn::MulAdd(px, hn::LoadU(d, row), s0);
      s1 = hn::MulAdd(px, hn::LoadU(d, row + lanes), s1);
      s2 = hn::MulAdd(px, hn::LoadU(d, row + 2 * lanes), s2);
      s3 = hn::MulAdd(px, hn::LoadU(d, row + 3 * lanes), s3);
    }
    hn::Store(s0, d, sum + at);
    hn::Store(s1, d, sum + at + lanes);
    hn::Store(s2, d, sum + at + 2 * lanes);
    hn::Store(s3, d, sum + at + 3 * lanes);
  }
  for (; at < E; at += lanes) {
    auto s0 = hn::Load(d, sum + at);
    for (std::size_t x = 0; x < n; ++x) {
      s0 = hn::MulAdd(hn::Set(d, p[x]), LoadUpTo(v[keys[x]], at, E), s0);
    }
    hn::Store(s0, d, sum + at);
  }
}

// a_i *= factor over whole vectors
template <typename T>
HWY_INLINE void Scale(T factor, std::size_t padded, T* a) {
  const Lanes<T> d;
  const auto f = hn::Set(d, factor);
  for (std::size_t at = 0; at < padded; at += hn::Lanes(d))
    hn::Store(hn::Mul(f, hn::Load(d, a + at)), d, a + at);
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_ROW_INL_H_
