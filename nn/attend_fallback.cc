// regard::attend in ATen operations, for devices that the engine does not run on.
//
// What is masked has no effect, be it NaN: every operand is cleaned of NaN and infinity before a product
// mixes its elements, and the NaN is put back into the rows that do see it.
#include <limits>
#include <utility>
#include <vector>

#include "nn/attend_op.h"

namespace regard::nn {
namespace {

using at::Tensor;
using c10::SymInt;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor Range(const SymInt& size, const Tensor& like) {
  return at::arange(c10::Scalar(size), like.options().dtype(at::kLong));
}

// Elements that products can mix with others without harm: finite ones; in a score made of squares, those of
// vectors with a finite square.
Tensor Usable(const Tensor& x, bool squared = false) {
  return squared ? x.detach().square().sum(-1, true).isfinite() : x.isfinite();
}

Tensor Clean(const Tensor& x, bool squared = false) { return at::where(Usable(x, squared), x, 0); }

// [.., D] -> [.., 1]: NaN for a vector that Clean changes, else 0
Tensor Poison(const Tensor& x, bool squared = false) {
  return at::where(Usable(x, squared).all(-1, true), 0.0, kNan).to(x.scalar_type());
}

// [B, G, S, D] -> [B, H, S, D]: the key head of each query head
Tensor PerQueryHead(const Tensor& x, const SymInt& heads) {
  const SymInt B = x.sym_size(0), G = x.sym_size(1), S = x.sym_size(2), D = x.sym_size(3);
  if (G == heads) return x;
  return x.unsqueeze(2).expand_symint({B, G, heads / G, S, D}).reshape_symint({B, heads, S, D});
}

struct Sizes {
  explicit Sizes(const AttendCall& call)
      : B(call.q.sym_size(0)), H(call.q.sym_size(1)), L(call.q.sym_size(2)), S(call.k.sym_size(2)) {}
  SymInt B, H, L, S;
};

// j - i' [L, S], with i' the key that query i stands at
Tensor Offsets(const AttendCall& call) {
  const Sizes n(call);
  const Tensor place = Range(n.L, call.q).unsqueeze(1), key = Range(n.S, call.q);
  if (call.options.corner == Corner::kTopLeft) return key - place;
  return key - place - c10::Scalar(n.S - n.L);
}

// [.., rows, columns] of a block map, each block repeated over its queries and keys
Tensor ExpandBlocks(const AttendCall& call) {
  const Sizes n(call);
  const AttendOptions& o = call.options;
  const auto block = [&](const SymInt& size, std::int64_t width) {
    return at::floor_divide(Range(size, call.q), width);
  };
  return o.blocks.index_select(-2, block(n.L, o.block_queries)).index_select(-1, block(n.S, o.block_keys));
}

// Broadcasts to [B, H, L, S], true where the mask allows; undefined: everywhere.
Tensor Allowed(const AttendCall& call) {
  const AttendOptions& o = call.options;
  const Sizes n(call);
  Tensor allowed;
  const auto also = [&](const Tensor& part) { allowed = allowed.defined() ? allowed & part : part; };
  if (o.causal) also(Offsets(call) <= 0);
  if (o.window_left) also(Offsets(call) >= -*o.window_left);
  if (o.window_right) also(Offsets(call) <= *o.window_right);
  if (o.lengths.defined()) {
    const Tensor lengths = o.lengths.dim() == 1 ? o.lengths.unsqueeze(1) : o.lengths;
    also(Range(n.S, call.q) < lengths.unsqueeze(-1).unsqueeze(1));
  }
  if (o.query_segments.defined()) {
    const auto rows = [](const Tensor& t) { return t.dim() == 1 ? t.unsqueeze(0) : t; };
    also(rows(o.query_segments).unsqueeze(-1).unsqueeze(1) ==
         rows(o.key_segments).unsqueeze(-2).unsqueeze(1));
  }
  if (o.blocks.defined()) also(ExpandBlocks(call));
  if (o.keep.defined()) also(o.keep);
  if (o.exclude_self) also(Range(n.L, call.q).unsqueeze(1) != Range(n.S, call.q));
  return allowed;
}

// |precision ∘ (q - k)| [B, H, L, S]
Tensor Distances(const AttendCall& call, const Tensor& q, const Tensor& k) {
  const Tensor precision = call.options.precision.to(q.options());
  constexpr std::int64_t kByDifference = 2;  // no cancellation of close points
  return at::cdist(q * precision, k * precision, 2.0, kByDifference);
}

// Where a compact kernel is not 0, for distances that may be NaN: that is not outside.
Tensor Inside(CompactKernel kernel, const Tensor& u) {
  return (kernel == CompactKernel::kBoxcar ? u > 1 : u >= 1).logical_not();
}

// log K(u) where u is inside, else 0
Tensor LogKernel(CompactKernel kernel, const Tensor& distances) {
  const Tensor u = at::where(Inside(kernel, distances), distances, 0);
  switch (kernel) {
    case CompactKernel::kBoxcar:
      return u - u;
    case CompactKernel::kTriangular:
      return at::log1p(-u);
    case CompactKernel::kEpanechnikov:
      return at::log1p(-u.square());
    case CompactKernel::kTricube:
      return 3 * at::log1p(-u.pow(3));
  }
  TORCH_INTERNAL_ASSERT(false);
}

// s before softcap, bias and ALiBi; q, k [B, H, *, D] are finite
Tensor RawScores(const AttendCall& call, const Tensor& q, const Tensor& k) {
  const AttendOptions& o = call.options;
  const auto options = q.options();
  switch (o.score) {
    case ScoreKind::kScaledDot:
    case ScoreKind::kDot:
      return (call.q.sym_size(3) == 0 ? 0.0 : ResolvedScale(call)) * at::matmul(q, k.mT());
    case ScoreKind::kCosine: {
      const Tensor norms = at::matmul(q.norm(2, -1, true), k.norm(2, -1, true).mT());
      return ResolvedScale(call) * at::matmul(q, k.mT()) / norms.clamp_min(o.eps);
    }
    case ScoreKind::kAdditive: {
      const Tensor w = o.additive_weight.to(options);  // [D] or [H, D]
      const Tensor per_head = w.dim() == 1 ? w : w.unsqueeze(1).unsqueeze(1);
      return (at::tanh(q.unsqueeze(3) + k.unsqueeze(2)) * per_head).sum(-1);
    }
    case ScoreKind::kGaussian:
      return -0.5 * Distances(call, q, k).square();
    case ScoreKind::kBoxcar:
    case ScoreKind::kTriangular:
    case ScoreKind::kEpanechnikov:
    case ScoreKind::kTricube:
      return LogKernel(*CompactKernelOf(o.score), Distances(call, q, k));
  }
  TORCH_INTERNAL_ASSERT(false);
}

// s where it is allowed, else -inf. [B, H, L, S]
Tensor Scores(const AttendCall& call, const Tensor& q, const Tensor& k, const Tensor& allowed) {
  const AttendOptions& o = call.options;
  const bool squared =
      o.score == ScoreKind::kCosine || o.score == ScoreKind::kGaussian || CompactKernelOf(o.score);
  Tensor s = RawScores(call, Clean(q, squared), Clean(k, squared));
  s = s + Poison(q, squared) + Poison(k, squared).mT();
  if (o.softcap) s = *o.softcap * at::tanh(s / *o.softcap);
  if (o.bias.defined()) s = s + o.bias.to(s.scalar_type());
  if (o.alibi_slopes.defined()) {
    s = s - o.alibi_slopes.to(s.scalar_type()).unsqueeze(1).unsqueeze(1) * Offsets(call).abs();
  }
  return allowed.defined() ? at::where(allowed, s, -kInfinity) : s;
}

// The finaliser of SplitMix64 on int64 tensors, where products wrap: engine/policies/random.h.
Tensor Mix(Tensor z) {
  const auto shift = [](const Tensor& x, std::int64_t bits) {  // without the sign
    return at::bitwise_and(at::bitwise_right_shift(x, bits), (std::int64_t{1} << (64 - bits)) - 1);
  };
  z = (z ^ shift(z, 30)) * static_cast<std::int64_t>(0xBF58476D1CE4E5B9u);
  z = (z ^ shift(z, 27)) * static_cast<std::int64_t>(0x94D049BB133111EBu);
  return z ^ shift(z, 31);
}

// The engine's 53 random bits for each (b, h, i, j): int64 [B, H, L, S]
Tensor RandomBits(const AttendCall& call, std::int64_t stream) {
  constexpr auto kStep = static_cast<std::int64_t>(0x9E3779B97F4A7C15u);
  const Sizes n(call);
  Tensor key = at::full({1, 1, 1, 1}, c10::Scalar(call.seed), call.q.options().dtype(at::kLong));
  key = Mix(key + static_cast<std::int64_t>(static_cast<std::uint64_t>(kStep) *
                                            static_cast<std::uint64_t>(stream)));
  std::int64_t dimension = 0;
  for (const SymInt& size : {n.B, n.H, n.L, n.S}) {
    std::vector<SymInt> shape(4, 1);
    shape[static_cast<std::size_t>(dimension++)] = size;
    key = Mix(key + (Range(size, call.q) + 1).reshape_symint(shape) * kStep);
  }
  return at::bitwise_and(at::bitwise_right_shift(key, 11), (std::int64_t{1} << 53) - 1);
}

constexpr std::int64_t kDropoutStream = 1, kGumbelStream = 2;

// The largest of each row, for a stable exp: 0 where there is none.
Tensor RowMaximum(const Tensor& s) {
  if (s.sym_size(-1) == 0) return s.new_zeros_symint({s.sym_size(0), s.sym_size(1), s.sym_size(2), 1});
  const Tensor m = s.detach().amax(-1, true);
  return m.masked_fill(m == -kInfinity, 0);
}

// The first of the largest. [B, H, L, 1]; -1 in a row without a key. A NaN counts as the largest.
Tensor FirstLargest(const Tensor& s) {
  const SymInt S = s.sym_size(-1);
  if (S == 0) return s.new_zeros_symint({s.sym_size(0), s.sym_size(1), s.sym_size(2), 1}).to(at::kLong) - 1;
  const Tensor m = s.amax(-1, true);
  const Tensor is_largest = (s == m) | s.isnan();
  const Tensor first = at::where(is_largest, Range(S, s), c10::Scalar(S)).amin(-1, true);
  return first.masked_fill(m == -kInfinity, -1);
}

// sum_j p_ij v_j, with v NaN or infinite only where a row sees it
Tensor WeightedSum(const Tensor& p, const Tensor& v, const Tensor& allowed) {
  if (!allowed.defined()) return at::matmul(p, v);
  const Tensor seen =
      at::matmul(allowed.to(p.scalar_type()).expand_as(p), v.isfinite().logical_not().to(p.scalar_type()));
  return at::where(seen > 0, kNan, at::matmul(p, Clean(v)));
}

// The case that scaled_dot_product_attention computes: no weights or sums asked for, no mask but a plain
// causal one. Undefined: not that case.
Tensor TrySdpa(const AttendCall& call) {
  const AttendOptions& o = call.options;
  const Sizes n(call);
  const bool plain = o.score == ScoreKind::kScaledDot || o.score == ScoreKind::kDot;
  const bool masked = o.window_left || o.window_right || o.lengths.defined() || o.query_segments.defined() ||
                      o.blocks.defined() || o.keep.defined() || o.exclude_self;
  if (!plain || masked || IsHard(call) || o.return_lse || o.return_weights || o.softcap || o.dropout > 0 ||
      o.alibi_slopes.defined() || n.S == 0 || call.q.sym_size(3) == 0) {
    return {};
  }
  const bool grouped = n.H != call.k.sym_size(1);
  if (!o.causal) {
    const auto bias = o.bias.defined() ? std::optional(o.bias.to(call.q.scalar_type())) : std::nullopt;
    return at::scaled_dot_product_attention(call.q, call.k, call.v, bias, 0.0, false, ResolvedScale(call),
                                            grouped);
  }
  if (o.bias.defined() || n.L != n.S) return {};
  const Tensor out = at::scaled_dot_product_attention(call.q, Clean(call.k), Clean(call.v), {}, 0.0, true,
                                                      ResolvedScale(call), grouped);
  const Tensor poison =
      at::cumsum(Poison(call.k) + at::where(Usable(call.v), 0.0, kNan), 2).to(out.scalar_type());
  return out + PerQueryHead(poison, n.H);
}

AttendOutputs NoOutputs(const AttendCall& call) {
  const auto options = call.q.options();
  const auto sums = options.dtype(SumType(call));
  return {Tensor(), at::empty({0}, sums), at::empty({0}, options), at::empty({0}, options.dtype(at::kLong)),
          at::empty({0}, sums)};
}

}  // namespace

AttendOutputs FallbackAttend(const AttendCall& call) {
  AttendOutputs r = NoOutputs(call);
  r[kOut] = TrySdpa(call);
  if (r[kOut].defined()) return r;

  const AttendOptions& o = call.options;
  const Sizes n(call);
  const auto type = call.q.scalar_type();
  const auto sums = r[kLse].scalar_type();
  const Tensor q = call.q.to(sums), v = PerQueryHead(call.v.to(sums), n.H);
  const Tensor k = PerQueryHead(call.k.to(sums), n.H);
  Tensor allowed = Allowed(call);
  if (const auto kernel = CompactKernelOf(o.score)) {  // what is outside is as good as masked
    const Tensor inside = Inside(*kernel, Distances(call, q.detach(), k.detach()).detach());
    allowed = allowed.defined() ? allowed & inside : inside;
  }
  const Tensor s = Scores(call, q, k, allowed);

  const Tensor m = RowMaximum(s);
  const Tensor e = at::exp(s - m);
  const Tensor sum = e.sum(-1, true);
  const Tensor empty = sum == 0;  // a row that sees no key
  const Tensor divisor = sum.masked_fill(empty, 1);
  const Tensor lse = (m + divisor.log()).masked_fill(empty, -kInfinity);
  Tensor p = e / divisor;
  if (IsHard(call)) {
    Tensor noisy = s.detach();
    if (o.normalizer == NormalizerKind::kSample) {
      const Tensor uniform = (RandomBits(call, kGumbelStream).to(at::kDouble) + 0.5) * 0x1p-53;
      noisy = noisy.to(at::kDouble) - uniform.log().neg().log();
    }
    const Tensor index = FirstLargest(noisy);
    const Tensor chosen = Range(n.S, s) == index;
    r[kIndex] = index.squeeze(-1);
    r[kLogProb] = at::where(chosen, s - lse.masked_fill(empty, 0), 0).sum(-1);
    // 1 for the chosen key, NaN where the row's scores hold one
    p = at::where(chosen, at::where(lse.isnan(), kNan, 1.0), 0).to(sums);
  }
  if (o.return_weights) r[kWeights] = p.to(type);
  if (o.return_lse) r[kLse] = lse.squeeze(-1);
  if (o.dropout > 0) {
    const auto threshold = static_cast<std::int64_t>(o.dropout * 0x1p53);
    p = p * (RandomBits(call, kDropoutStream) >= threshold) / (1 - o.dropout);
  }
  r[kOut] = WeightedSum(p, v, allowed).to(type);
  return r;
}

}  // namespace regard::nn
