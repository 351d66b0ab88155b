// Attention's formula with parts of the caller's own. A part is a small struct, a formula for one pair; the
// caller's compiler makes it a loop over up to kMostPairs pairs, which the engine runs inside its tiles,
// forward and backward. Nothing of size L S is stored.
//
//   // May query i of batch b see key j?
//   struct SameDocument {
//     const std::int64_t* document;
//     bool operator()(const regard::Pair& at) const { return document[at.i] == document[at.j]; }
//   };
//
//   // What is a score changed to?
//   struct LearnedAlibi {
//     static constexpr int kParameters = 1;  // the slope
//     auto operator()(auto s, const auto& at, const auto& slope) const {
//       return s - slope[0] * regard::Abs(at.offset);
//     }
//   };
//
//   // What does one dimension add to the score of a query and a key?
//   struct Manhattan {
//     auto operator()(auto q, auto k, auto w) const { return -w * regard::Abs(q - k); }
//   };
//
//   options.mask.custom = regard::CustomMask(SameDocument{document});
//   options.change = regard::CustomChange<float>(LearnedAlibi{}, slopes);  // [H, 1], or [1, 1] for all heads
//   gradients.dchange = dslopes;
//   options.score = regard::CustomScore<float>(Manhattan{}, w);  // [H, D], or [1, D] for all heads
//   gradients.dw = dw;
//
// A lambda will do where there are no parameters to count. Derivatives follow from the formula: it is called
// with numbers for the value and with regard::Dual for the gradient, so it uses what regard/dual.h offers.
//
// A struct is copied into the options, and on for each loop: it is trivially copyable (numbers, pointers,
// views), and what it points to outlives the call. It is called from several threads at once, for pairs in
// any order and more than once, also for pairs that another part forbids; it must not throw. The same
// arguments must give the same result.
#ifndef REGARD_CUSTOM_H_
#define REGARD_CUSTOM_H_

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "regard/dual.h"
#include "regard/tensor_view.h"

namespace regard {

// Query i of head h of batch b, and key j.
struct Pair {
  std::int64_t b, h, i, j;
};

// The same for a change of scores, where T is the type of scores.
template <typename T>
struct ScoredPair : Pair {
  T offset;  // j - i, which a compiler has in vectors where it has i and j one by one
};

inline constexpr std::int64_t kMostPairs = 256;

// A query against `count` keys from j0 on, at most kMostPairs.
struct PairRow {
  std::int64_t b, h, i, j0, count;
};

// Queries i0 <= i < i1 of head h against keys j0 <= j < j1.
struct Tile {
  std::int64_t b, h, i0, i1, j0, j1;
};

enum class TileClass {
  kEmpty,    // no pair is allowed: the tile is skipped
  kPartial,  // some may be
  kFull,     // every pair is allowed
};

// What the engine asks of a mask. For those who want to write the loop themselves.
class MaskRows {
 public:
  virtual ~MaskRows() = default;
  // kEmpty and kFull are promises.
  virtual TileClass Classify(const Tile& tile) const = 0;
  // allowed[x] = 0 where key j0 + x is forbidden, else as it was.
  virtual void TakeAway(const PairRow& row, std::uint8_t* allowed) const = 0;
};

// What the engine asks of a change of scores.
template <typename T>
class ChangeRows {
 public:
  virtual ~ChangeRows() = default;
  // How many numbers `parameters` holds.
  virtual std::int64_t parameters() const = 0;
  // s[x] becomes f(s[x]).
  virtual void Apply(const PairRow& row, const T* parameters, T* s) const = 0;
  // From scores s as they were and ds = dL/df: dparameters[n * kMostPairs + x] = ds[x] df/dparameter n, and
  // ds[x] becomes ds[x] df/ds. Both are 0 where ds[x] is 0, whatever f is there.
  virtual void Differentiate(const PairRow& row, const T* parameters, const T* s, T* ds,
                             T* dparameters) const = 0;
};

// What the engine asks of a score, s = sum_d f(q_d, k_d, w_d).
template <typename T>
class ScoreRows {
 public:
  virtual ~ScoreRows() = default;
  // Whether there is a w.
  virtual bool weighted() const = 0;
  // For x < count, at most kMostPairs: s[x] = sum_d f(q[d], keys[d * stride + x], w[d]), in the order of d;
  // w is not looked at where there is none.
  virtual void Sum(const T* q, const T* keys, const T* w, std::int64_t D, std::int64_t stride,
                   std::int64_t count, T* s) const = 0;
  // The same of one dimension, given ds = dL/ds: dq[x] = ds[x] df/dq, dk[x] += ds[x] df/dk and
  // dw[x] = ds[x] df/dw. What is written and added is 0 where ds[x] is 0, whatever f is there.
  virtual void Differentiate(T q, const T* keys, T w, std::int64_t count, const T* ds, T* dq, T* dk,
                             T* dw) const = 0;
};

namespace custom {

template <typename F>
concept Small = std::is_trivially_copyable_v<F>;

template <typename F>
concept Predicate = Small<F> && std::predicate<const F&, const Pair&>;

template <typename F>
concept Classifies = requires(const F& f, const Tile& tile) {
  { f.Classify(tile) } -> std::same_as<TileClass>;
};

template <typename F>
inline constexpr std::size_t kParameters = 0;
template <typename F>
requires requires { F::kParameters; }
inline constexpr std::size_t kParameters<F> = static_cast<std::size_t>(F::kParameters);

template <typename F, typename N, typename T>
concept Changes = requires(const F& f, const N& s, const ScoredPair<T>& at,
                           const std::array<N, kParameters<F>>& parameters) {
  { f(s, at, parameters) } -> std::convertible_to<N>;
};

template <typename F, typename T>
concept Change = Small<F> && Changes<F, T, T> && Changes<F, Dual<T, 1 + kParameters<F>>, T>;

// One dimension of a score, with a w and without.
template <typename F, typename N>
concept WeightedTerm = requires(const F& f, const N& x) {
  { f(x, x, x) } -> std::convertible_to<N>;
};
template <typename F, typename N>
concept PlainTerm = requires(const F& f, const N& x) {
  { f(x, x) } -> std::convertible_to<N>;
};
template <typename F, typename T>
concept Term = Small<F> &&
    ((WeightedTerm<F, T> && WeightedTerm<F, Dual<T, 3>>) || (PlainTerm<F, T> && PlainTerm<F, Dual<T, 3>>));

template <Predicate F>
class MaskLoop final : public MaskRows {
 public:
  explicit MaskLoop(const F& predicate) : predicate_(predicate) {}

  // Unless the struct knows, by a look at all pairs: up to the first that is unlike the others.
  TileClass Classify(const Tile& tile) const override {
    if constexpr (Classifies<F>) {
      return predicate_.Classify(tile);
    } else {
      bool any = false, all = true;
      for (std::int64_t i = tile.i0; i < tile.i1; ++i) {
        for (std::int64_t j0 = tile.j0; j0 < tile.j1; j0 += kMostPairs) {
          const PairRow row{tile.b, tile.h, i, j0, std::min(kMostPairs, tile.j1 - j0)};
          std::array<std::uint8_t, kMostPairs> allowed;
          allowed.fill(1);
          TakeAway(row, allowed.data());
          std::int64_t count = 0;
          for (std::size_t x = 0; x < static_cast<std::size_t>(row.count); ++x) count += allowed[x];
          any = any || count > 0;
          all = all && count == row.count;
          if (any && !all) return TileClass::kPartial;
        }
      }
      return any ? TileClass::kFull : TileClass::kEmpty;
    }
  }

  void TakeAway(const PairRow& row, std::uint8_t* __restrict allowed) const override {
    const F predicate = predicate_;
    for (int x = 0; x < static_cast<int>(row.count); ++x) {
      allowed[x] &= static_cast<std::uint8_t>(predicate(Pair{row.b, row.h, row.i, row.j0 + x}) ? 1 : 0);
    }
  }

 private:
  F predicate_;
};

// x, or 0 where g is 0; without a branch, which would keep a loop from becoming one of vectors.
template <typename T>
T IfNot0(T g, T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<T>(std::bit_cast<Bits>(x) & (Bits{0} - Bits{g != 0}));
}

template <typename T, typename F>
class ChangeLoop final : public ChangeRows<T> {
 public:
  explicit ChangeLoop(const F& change) : change_(change) {}

  std::int64_t parameters() const override { return kCount; }

  void Apply(const PairRow& row, const T* parameters, T* __restrict s) const override {
    const F change = change_;  // where no pointer reaches it
    std::array<T, kCount> p;
    std::copy_n(parameters, kCount, p.begin());
    const T first = static_cast<T>(row.j0 - row.i);
    for (int x = 0; x < static_cast<int>(row.count); ++x) s[x] = change(s[x], At(row, first, x), p);
  }

  void Differentiate(const PairRow& row, const T* parameters, const T* __restrict s, T* __restrict ds,
                     T* __restrict dparameters) const override {
    using Number = Dual<T, 1 + kCount>;
    const F change = change_;
    std::array<Number, kCount> p;
    for (std::size_t n = 0; n < kCount; ++n) p[n] = Number(parameters[n], 1 + n);
    const T first = static_cast<T>(row.j0 - row.i);
    for (int x = 0; x < static_cast<int>(row.count); ++x) {
      const Number f = change(Number(s[x], 0), At(row, first, x), p);
      const T g = ds[x];
      ds[x] = IfNot0(g, g * f.slope[0]);
      Store(g, f, dparameters + x, std::make_index_sequence<kCount>());
    }
  }

 private:
  static constexpr std::size_t kCount = kParameters<F>;

  static ScoredPair<T> At(const PairRow& row, T first, int x) {
    return {{row.b, row.h, row.i, row.j0 + x}, first + static_cast<T>(x)};
  }

  template <std::size_t... kAt>
  static void Store([[maybe_unused]] T g, const Dual<T, 1 + kCount>& f, [[maybe_unused]] T* to,
                    std::index_sequence<kAt...>) {
    ((to[kAt * static_cast<std::size_t>(kMostPairs)] = IfNot0(g, g * f.slope[1 + kAt])), ...);
  }

  F change_;
};

template <typename T, typename F>
class ScoreLoop final : public ScoreRows<T> {
 public:
  explicit ScoreLoop(const F& term) : term_(term) {}

  bool weighted() const override { return WeightedTerm<F, T>; }

  void Sum(const T* q, const T* keys, const T* w, std::int64_t D, std::int64_t stride, std::int64_t count,
           T* __restrict s) const override {
    const F term = term_;
    std::fill_n(s, count, T(0));
    for (std::int64_t d = 0; d < D; ++d, keys += stride) {
      const T q_d = q[d], w_d = WeightedTerm<F, T> ? w[d] : T(0);
      for (int x = 0; x < static_cast<int>(count); ++x) s[x] += Call(term, q_d, keys[x], w_d);
    }
  }

  void Differentiate(T q, const T* __restrict keys, T w, std::int64_t count, const T* __restrict ds,
                     T* __restrict dq, T* __restrict dk, T* __restrict dw) const override {
    using Number = Dual<T, 3>;
    const F term = term_;
    for (int x = 0; x < static_cast<int>(count); ++x) {
      const Number f = Call(term, Number(q, 0), Number(keys[x], 1), Number(w, 2));
      const T g = ds[x];
      dq[x] = IfNot0(g, g * f.slope[0]);
      dk[x] += IfNot0(g, g * f.slope[1]);
      dw[x] = IfNot0(g, g * f.slope[2]);
    }
  }

 private:
  template <typename N>
  static N Call(const F& term, const N& q, const N& k, [[maybe_unused]] const N& w) {
    if constexpr (WeightedTerm<F, N>) {
      return term(q, k, w);
    } else {
      return term(q, k);
    }
  }

  F term_;
};

}  // namespace custom

// One more part of a mask: what it forbids does not exist, like what any other part forbids. Tiles that it
// leaves nothing of are skipped; a struct may have `TileClass Classify(const Tile&) const`, to say so sooner
// than by a look at every pair.
struct CustomMask {
  template <custom::Predicate F>
  explicit CustomMask(const F& predicate) : rows(std::make_shared<custom::MaskLoop<F>>(predicate)) {}
  explicit CustomMask(std::shared_ptr<const MaskRows> rows_) : rows(std::move(rows_)) {}

  std::shared_ptr<const MaskRows> rows;
};

// s becomes f(s, pair, parameters), after a softcap and before bias and ALiBi. The struct is called as
// f(s, at, parameters) with `at` a ScoredPair<T> and `parameters` an array of its kParameters numbers, of s's
// type; a struct without parameters does without kParameters.
template <typename T>
struct CustomChange {
  template <custom::Change<T> F>
  explicit CustomChange(const F& change, TensorView<const T, 2> parameters_ = {})
      : rows(std::make_shared<custom::ChangeLoop<T, F>>(change)), parameters(parameters_) {}
  explicit CustomChange(std::shared_ptr<const ChangeRows<T>> rows_, TensorView<const T, 2> parameters_ = {})
      : rows(std::move(rows_)), parameters(parameters_) {}

  std::shared_ptr<const ChangeRows<T>> rows;
  TensorView<const T, 2>
      parameters;  // [H, n], or [1, n] for the same in every head; not looked at where n is 0
};

// s = sum_d f(q_d, k_d, w_d) over the D dimensions of a query and a key; a struct that takes no w is called
// as f(q_d, k_d). A function of the sum, its root say, is a CustomChange. The struct is also called with 0
// for a query or key that is not there; what it returns then is dropped.
template <typename T>
struct CustomScore {
  template <custom::Term<T> F>
  explicit CustomScore(const F& term, TensorView<const T, 2> w_ = {})
      : rows(std::make_shared<custom::ScoreLoop<T, F>>(term)), w(w_) {}
  explicit CustomScore(std::shared_ptr<const ScoreRows<T>> rows_, TensorView<const T, 2> w_ = {})
      : rows(std::move(rows_)), w(w_) {}

  std::shared_ptr<const ScoreRows<T>> rows;
  TensorView<const T, 2>
      w;  // [H, D], or [1, D] for the same in every head; not looked at where the struct takes none
};

}  // namespace regard

#endif  // REGARD_CUSTOM_H_
