#include "engine/validate.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>

namespace regard::engine {
namespace {

using Index = std::int64_t;

std::string Text(const char* text) { return text; }

std::string Text(Index value) { return std::to_string(value); }

std::string Text(double value) {
  std::array<char, 32> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%g", value);
  return buffer.data();
}

template <std::size_t kRank>
std::string Text(const std::array<Index, kRank>& shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < kRank; ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

// Collects the first fault; later checks are then skipped.
class Checker {
 public:
  bool ok() const { return status_.ok(); }
  Status status() const { return status_; }

  // The message is its parts one after the other; it is put together on failure only.
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (ok()) status_ = Status::InvalidArgument((std::string() + ... + Text(parts)));
  }

  template <typename... Parts>
  void Require(bool condition, const Parts&... parts) {
    if (!condition) Fail(parts...);
  }

  // Sizes are not negative, memory is there, and no offset leaves 64 bits.
  template <typename T, std::size_t kRank>
  void Sound(const char* name, const TensorView<T, kRank>& t) {
    if (!ok()) return;
    bool empty = false;
    for (Index size : t.shape) {
      if (size < 0) return Fail(name, " has shape ", t.shape, "; sizes must not be negative");
      empty = empty || size == 0;
    }
    if (empty) return;
    constexpr Index kBytes = sizeof(T) == 2 ? sizeof(float) : sizeof(T);  // of the copy of 16-bit numbers
    Index elements = kBytes, reach = 0;
    for (std::size_t d = 0; d < kRank; ++d) {
      Index step = 0;
      const bool overflow = __builtin_mul_overflow(elements, t.shape[d], &elements) ||
                            t.strides[d] == std::numeric_limits<Index>::min() ||
                            __builtin_mul_overflow(t.shape[d] - 1, std::abs(t.strides[d]), &step) ||
                            __builtin_mul_overflow(step, kBytes, &step) ||
                            __builtin_add_overflow(reach, step, &reach);
      if (overflow) {
        return Fail(name, " has shape ", t.shape, " and strides ", t.strides,
                    "; its size in bytes does not fit 64 bits");
      }
    }
    if (t.data == nullptr) Fail(name, " has shape ", t.shape, " but a null pointer");
  }

  // Sound, and of exactly this shape. `meaning` spells the shape with letters: "[B, H, L, E]".
  template <typename T, std::size_t kRank>
  void Shape(const char* name, const TensorView<T, kRank>& t, const std::array<Index, kRank>& expected,
             const char* meaning) {
    Sound(name, t);
    Require(t.shape == expected, name, " has shape ", t.shape, "; expected ", meaning, " = ", expected);
  }

  // Sound, and every size is the expected one or 1.
  template <typename T, std::size_t kRank>
  void Broadcastable(const char* name, const TensorView<T, kRank>& t, const std::array<Index, kRank>& full,
                     const char* meaning) {
    Sound(name, t);
    for (std::size_t d = 0; d < kRank; ++d) {
      Require(t.shape[d] == full[d] || t.shape[d] == 1, name, " has shape ", t.shape, "; expected ", meaning,
              ", each size 1 or that of ", full);
    }
  }

  // A tensor that is written: of this shape, and its elements do not share memory by a stride of 0.
  template <typename T, std::size_t kRank>
  void Writable(const char* name, const TensorView<T, kRank>& t, const std::array<Index, kRank>& expected,
                const char* meaning) {
    Shape(name, t, expected, meaning);
    if (!ok() || t.size() == 0) return;
    for (std::size_t d = 0; d < kRank; ++d) {
      Require(t.strides[d] != 0 || t.shape[d] <= 1, name, " has strides ", t.strides,
              "; a tensor that is written may not have stride 0 in a dimension of size ", t.shape[d]);
    }
  }

 private:
  Status status_;
};

struct Sizes {
  Index B, H, G, L, S, D, E;
  bool empty() const { return B == 0 || H == 0 || L == 0; }
};

template <typename T>
Sizes CheckInputs(const AttentionInputs<T>& in, Checker* check) {
  check->Sound("q", in.q);
  check->Sound("k", in.k);
  check->Sound("v", in.v);
  const Sizes n{in.q.shape[0], in.q.shape[1], in.k.shape[1], in.q.shape[2],
                in.k.shape[2], in.q.shape[3], in.v.shape[3]};
  check->Require(in.k.shape[0] == n.B, "k has shape ", in.k.shape, "; expected batch size ", n.B, " as in q ",
                 in.q.shape);
  check->Require(in.k.shape[3] == n.D, "k has shape ", in.k.shape, "; expected width ", n.D, " as in q ",
                 in.q.shape);
  for (std::size_t d : {0, 1, 2}) {
    check->Require(in.v.shape[d] == in.k.shape[d], "v has shape ", in.v.shape,
                   "; expected [B, G, S, E] with B, G, S as in k ", in.k.shape);
  }
  const bool divides = n.G == 0 ? n.H == 0 : n.H % n.G == 0;
  check->Require(divides, "k has ", n.G, " heads, which does not divide q's ", n.H, " heads (q ", in.q.shape,
                 ", k ", in.k.shape, ")");
  Index product = static_cast<Index>(sizeof(double));
  for (Index size : {n.B, n.H, n.L, n.S}) {
    if (size > 0 && __builtin_mul_overflow(product, size, &product)) {
      check->Fail("q ", in.q.shape, " and k ", in.k.shape,
                  ": the number of pairs B H L S does not fit 64 bits");
    }
  }
  return n;
}

// The precision of a score that has one.
template <typename T>
const TensorView<const T, 1>* PrecisionOf(const Score<T>& score) {
  if (const auto* gaussian = std::get_if<Gaussian<T>>(&score)) return &gaussian->precision;
  if (const auto* compact = std::get_if<Compact<T>>(&score)) return &compact->precision;
  return nullptr;
}

// The w of a score; null: it has none.
template <typename T>
const TensorView<const T, 2>* WOf(const Score<T>& score) {
  if (const auto* additive = std::get_if<Additive<T>>(&score)) return &additive->w;
  const auto* custom = std::get_if<CustomScore<T>>(&score);
  return custom != nullptr && custom->rows->weighted() ? &custom->w : nullptr;
}

bool Finite(double x) { return std::isfinite(x); }

template <typename T>
void CheckScore(const Score<T>& score, const Sizes& n, Checker* check) {
  if (const auto* dot = std::get_if<Dot>(&score)) {
    check->Require(Finite(dot->scale), "score Dot has scale ", dot->scale, "; expected a finite number");
  } else if (const auto* cosine = std::get_if<Cosine>(&score)) {
    check->Require(Finite(cosine->scale), "score Cosine has scale ", cosine->scale,
                   "; expected a finite number");
    check->Require(cosine->eps > 0 && Finite(cosine->eps), "score Cosine has eps ", cosine->eps,
                   "; expected a number above 0");
  }
  if (const auto* w = WOf(score)) {
    const char* name =
        std::holds_alternative<Additive<T>>(score) ? "score Additive's w" : "score CustomScore's w";
    check->Sound(name, *w);
    check->Require((w->shape[0] == n.H || w->shape[0] == 1) && w->shape[1] == n.D, name, " has shape ",
                   w->shape, "; expected [H or 1, D] = [", n.H, " or 1, ", n.D, "]");
  }
  if (const auto* a = PrecisionOf(score)) {
    const char* name = std::holds_alternative<Gaussian<T>>(score) ? "score Gaussian's precision"
                                                                  : "score Compact's precision";
    check->Sound(name, *a);
    check->Require(a->shape[0] == 1 || a->shape[0] == n.D, name, " has shape ", a->shape,
                   "; expected [1] or [D] = [", n.D, "]");
  }
  if (const auto* compact = std::get_if<Compact<T>>(&score)) {
    const auto kernel = static_cast<Index>(compact->kernel);
    check->Require(kernel >= 0 && kernel <= static_cast<Index>(CompactKernel::kTricube),
                   "score Compact's kernel is ", kernel, "; expected a CompactKernel");
  }
}

void CheckLengths(const TensorView<const Index, 2>& lengths, const Sizes& n, Checker* check) {
  check->Sound("mask lengths", lengths);
  check->Require(lengths.shape[0] == n.B && (lengths.shape[1] == 1 || lengths.shape[1] == n.L),
                 "mask lengths has shape ", lengths.shape, "; expected [B, 1] or [B, L] = [", n.B, ", 1 or ",
                 n.L, "]");
  if (!check->ok()) return;
  for (Index b = 0; b < lengths.shape[0]; ++b) {
    for (Index i = 0; i < lengths.shape[1]; ++i) {
      const Index length = lengths(b, i);
      if (length < 0 || length > n.S) {
        return check->Fail("mask lengths[", b, ", ", i, "] is ", length, "; expected 0 to S = ", n.S);
      }
    }
  }
}

void CheckMask(const Mask& mask, const Sizes& n, Checker* check) {
  if (mask.lengths) CheckLengths(mask.lengths->lengths, n, check);
  if (mask.segments) {
    check->Broadcastable("mask segments.query", mask.segments->query, {n.B, n.L}, "[B or 1, L]");
    check->Broadcastable("mask segments.key", mask.segments->key, {n.B, n.S}, "[B or 1, S]");
    check->Require(mask.segments->query.shape[1] == n.L, "mask segments.query has shape ",
                   mask.segments->query.shape, "; expected [B or 1, L] with L = ", n.L);
    check->Require(mask.segments->key.shape[1] == n.S, "mask segments.key has shape ",
                   mask.segments->key.shape, "; expected [B or 1, S] with S = ", n.S);
  }
  if (mask.blocks) {
    const Blocks& blocks = *mask.blocks;
    check->Require(blocks.query_size > 0, "mask blocks.query_size is ", blocks.query_size,
                   "; expected at least 1");
    check->Require(blocks.key_size > 0, "mask blocks.key_size is ", blocks.key_size, "; expected at least 1");
    if (!check->ok()) return;
    const auto ceil = [](Index a, Index b) { return a / b + (a % b != 0); };
    const std::array<Index, 4> full{n.B, n.H, ceil(n.L, blocks.query_size), ceil(n.S, blocks.key_size)};
    check->Broadcastable("mask blocks.map", blocks.map, full,
                         "[B or 1, H or 1, ceil(L / query_size), ceil(S / key_size)]");
    check->Require(blocks.map.shape[2] == full[2] && blocks.map.shape[3] == full[3],
                   "mask blocks.map has shape ", blocks.map.shape,
                   "; expected [B or 1, H or 1, ceil(L / query_size), ceil(S / key_size)] of ", full);
  }
  if (mask.keep) {
    check->Broadcastable("mask keep", mask.keep->keep, {n.B, n.H, n.L, n.S},
                         "[B or 1, H or 1, L or 1, S or 1]");
  }
}

// The parameters of a change, or their gradient: [H or 1, count].
template <typename T>
void CheckChange(Index count, const TensorView<T, 2>& parameters, const Sizes& n, Checker* check) {
  if (count == 0) return;
  check->Sound("change's parameters", parameters);
  check->Require((parameters.shape[0] == n.H || parameters.shape[0] == 1) && parameters.shape[1] == count,
                 "change's parameters has shape ", parameters.shape, "; expected [H or 1, kParameters] = [",
                 n.H, " or 1, ", count, "]");
}

template <typename T>
void CheckOptions(const AttentionOptions<T>& o, const Sizes& n, Checker* check) {
  const auto* own = std::get_if<CustomScore<T>>(&o.score);
  check->Require(own == nullptr || own->rows, "score CustomScore's rows is null; expected a ScoreRows");
  check->Require(!o.change || o.change->rows, "change's rows is null; expected a ChangeRows");
  check->Require(!o.mask.custom || o.mask.custom->rows, "mask custom's rows is null; expected a MaskRows");
  if (!check->ok()) return;
  CheckScore(o.score, n, check);
  if (o.softcap) {
    check->Require(*o.softcap > 0 && Finite(*o.softcap), "softcap is ", *o.softcap,
                   "; expected a number above 0");
  }
  if (o.change) {
    check->Require(!std::holds_alternative<Compact<T>>(o.score),
                   "a change is given with score Compact, which has none");
    CheckChange(o.change->rows->parameters(), o.change->parameters, n, check);
  }
  if (o.bias) check->Broadcastable("bias", *o.bias, {n.B, n.H, n.L, n.S}, "[B or 1, H or 1, L or 1, S or 1]");
  if (o.alibi) check->Shape("alibi slopes", o.alibi->slopes, {n.H}, "[H]");
  CheckMask(o.mask, n, check);
  check->Require(o.dropout.probability >= 0 && o.dropout.probability < 1, "dropout probability is ",
                 o.dropout.probability, "; expected 0 <= probability < 1");
  check->Require(o.threads >= 0, "threads is ", Index{o.threads}, "; expected 0 (all cores) or more");
}

}  // namespace

template <typename T>
Status ValidateForward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                       const AttentionOutputs<T>& outputs) {
  Checker check;
  const Sizes n = CheckInputs(inputs, &check);
  if (!check.ok()) return check.status();
  CheckOptions(options, n, &check);
  check.Writable("out", outputs.out, {n.B, n.H, n.L, n.E}, "[B, H, L, E]");
  if (outputs.lse) check.Writable("lse", *outputs.lse, {n.B, n.H, n.L}, "[B, H, L]");
  if (outputs.weights) check.Writable("weights", *outputs.weights, {n.B, n.H, n.L, n.S}, "[B, H, L, S]");
  if (outputs.index) check.Writable("index", *outputs.index, {n.B, n.H, n.L}, "[B, H, L]");
  if (outputs.log_prob) check.Writable("log_prob", *outputs.log_prob, {n.B, n.H, n.L}, "[B, H, L]");
  if (std::holds_alternative<Softmax>(options.normalizer)) {
    check.Require(!outputs.index, "index is asked for with normalizer Softmax; it needs Argmax or Sample");
    check.Require(!outputs.log_prob,
                  "log_prob is asked for with normalizer Softmax; it needs Argmax or Sample");
  }
  return check.status();
}

template <typename T>
Status ValidateBackward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                        const AttentionUpstream<T>& up, const AttentionGradients<T>& grads) {
  Checker check;
  const Sizes n = CheckInputs(inputs, &check);
  if (!check.ok()) return check.status();
  CheckOptions(options, n, &check);
  const bool softmax = std::holds_alternative<Softmax>(options.normalizer);
  check.Shape("lse", up.lse, {n.B, n.H, n.L}, "[B, H, L]");
  if (up.dout) check.Shape("dout", *up.dout, {n.B, n.H, n.L, n.E}, "[B, H, L, E]");
  if (up.dout && softmax) check.Shape("out", up.out, {n.B, n.H, n.L, n.E}, "[B, H, L, E]");
  if (up.dlse) check.Shape("dlse", *up.dlse, {n.B, n.H, n.L}, "[B, H, L]");
  if (up.dweights) check.Shape("dweights", *up.dweights, {n.B, n.H, n.L, n.S}, "[B, H, L, S]");
  if (up.dlog_prob) check.Shape("dlog_prob", *up.dlog_prob, {n.B, n.H, n.L}, "[B, H, L]");
  if (softmax) {
    check.Require(!up.dlog_prob, "dlog_prob is given with normalizer Softmax; it needs Argmax or Sample");
  } else {
    check.Require(up.index.has_value(), "index is not given; normalizer Argmax or Sample needs it");
    if (up.index) check.Shape("index", *up.index, {n.B, n.H, n.L}, "[B, H, L]");
  }
  if (!check.ok()) return check.status();
  if (up.index && !softmax) {
    for (Index b = 0; b < n.B; ++b) {
      for (Index h = 0; h < n.H; ++h) {
        for (Index i = 0; i < n.L; ++i) {
          const Index chosen = (*up.index)(b, h, i);
          check.Require(chosen >= -1 && chosen < n.S, "index[", b, ", ", h, ", ", i, "] is ", chosen,
                        "; expected -1 to S - 1 = ", n.S - 1);
        }
      }
    }
  }
  if (grads.dq) check.Writable("dq", *grads.dq, inputs.q.shape, "[B, H, L, D]");
  if (grads.dk) check.Writable("dk", *grads.dk, inputs.k.shape, "[B, G, S, D]");
  if (grads.dv) check.Writable("dv", *grads.dv, inputs.v.shape, "[B, G, S, E]");
  if (grads.dbias) {
    check.Require(options.bias.has_value(), "dbias is asked for without a bias");
    if (options.bias) check.Writable("dbias", *grads.dbias, options.bias->shape, "bias's shape");
  }
  if (grads.dw) {
    const auto* w = WOf(options.score);
    check.Require(w != nullptr,
                  "dw is asked for with a score that has no w; it needs Additive or a CustomScore with one");
    if (w != nullptr) check.Writable("dw", *grads.dw, w->shape, "w's shape");
  }
  if (grads.dchange) {
    check.Require(options.change.has_value(), "dchange is asked for without a change");
    if (options.change) {
      check.Writable("dchange", *grads.dchange, options.change->parameters.shape,
                     "the shape of change's parameters");
    }
  }
  if (grads.dprecision) {
    const auto* precision = PrecisionOf(options.score);
    check.Require(precision != nullptr,
                  "dprecision is asked for with a score that has no precision; it needs Gaussian or Compact");
    if (precision) check.Writable("dprecision", *grads.dprecision, precision->shape, "precision's shape");
  }
  return check.status();
}

#define REGARD_INSTANTIATE(Sum, T)                                                             \
  template Status ValidateForward<T>(const AttentionOptions<Sum>&, const AttentionInputs<T>&,  \
                                     const AttentionOutputs<T>&);                              \
  template Status ValidateBackward<T>(const AttentionOptions<Sum>&, const AttentionInputs<T>&, \
                                      const AttentionUpstream<T>&, const AttentionGradients<T>&);
REGARD_INSTANTIATE(float, float)
REGARD_INSTANTIATE(double, double)
REGARD_INSTANTIATE(float, BFloat16)
REGARD_INSTANTIATE(float, Float16)
#undef REGARD_INSTANTIATE

}  // namespace regard::engine
