#include "regard/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <new>
#include <vector>

#include "engine/base/memory.h"
#include "engine/base/target.h"
#include "engine/kernels/backward.h"
#include "engine/kernels/choice.h"
#include "engine/kernels/forward.h"
#include "engine/kernels/problem.h"
#include "engine/kernels/row_term.h"
#include "engine/kernels/tiled_backward.h"
#include "engine/kernels/tiled_forward.h"
#include "engine/run_tasks.h"
#include "engine/storage.h"
#include "engine/validate.h"

namespace regard {
namespace engine {
namespace {

// A tensor whose last stride is 1: the view itself, or a packed copy that this object holds.
template <typename T>
class Packed {
 public:
  template <std::size_t kRank>
  TensorView<const T, kRank> Pack(const TensorView<const T, kRank>& view) {
    const Index width = view.shape[kRank - 1];
    if (view.size() == 0) return {view.data, view.shape, {}};  // perhaps no memory: nothing to step over
    if (view.strides[kRank - 1] == 1 || width <= 1) {
      TensorView<const T, kRank> same = view;
      same.strides[kRank - 1] = 1;
      return same;
    }
    copy_ = Buffer<T>(static_cast<std::size_t>(view.size()));
    std::array<Index, kRank> at{};
    T* to = copy_.data();
    for (Index rows = view.size() / width; rows > 0; --rows, to += width) {
      const T* from = view.data;
      for (std::size_t d = 0; d + 1 < kRank; ++d) from += at[d] * view.strides[d];
      for (Index x = 0; x < width; ++x) to[x] = from[x * view.strides[kRank - 1]];
      for (std::size_t d = kRank - 1; d-- > 0 && ++at[d] == view.shape[d];) at[d] = 0;
    }
    return {copy_.data(), view.shape};
  }

 private:
  Buffer<T> copy_;
};

// A problem and the memory it points to.
template <typename T>
class Plan {
 public:
  Plan(const AttentionOptions<T>& options, const AttentionInputs<T>& in) {
    p_.B = in.q.shape[0], p_.H = in.q.shape[1], p_.L = in.q.shape[2], p_.D = in.q.shape[3];
    p_.G = in.k.shape[1], p_.S = in.k.shape[2], p_.E = in.v.shape[3];
    p_.group = p_.G == 0 ? 1 : p_.H / p_.G;
    p_.q = q_.Pack(in.q), p_.k = k_.Pack(in.k), p_.v = v_.Pack(in.v);
    std::visit([&](const auto& score) { SetScore(score); }, options.score);
    if (options.softcap) p_.softcap = static_cast<T>(*options.softcap);
    if (options.change) SetChange(*options.change);
    if (options.bias) {
      p_.bias = options.bias;
      for (std::size_t d = 0; d < 4; ++d) {
        if (p_.bias->shape[d] == 1) p_.bias->strides[d] = 0;
      }
    }
    if (options.alibi) {
      p_.slopes = options.alibi->slopes.data;
      p_.slopes_stride = options.alibi->slopes.strides[0];
      p_.alibi_shift = options.alibi->corner == Corner::kTopLeft ? 0 : p_.S - p_.L;
    }
    p_.mask.emplace(options.mask, p_.L, p_.S);
    if (std::holds_alternative<Argmax>(options.normalizer)) p_.normalizer = NormalizerKind::kArgmax;
    if (const auto* sample = std::get_if<Sample>(&options.normalizer)) {
      p_.normalizer = NormalizerKind::kSample;
      p_.sample_seed = sample->seed;
    }
    p_.dropout = DropoutRule(options.dropout.probability);
    p_.dropout_seed = options.dropout.seed;
  }

  const Problem<T>& problem() const { return p_; }

 private:
  void SetScore(const ScaledDot&) {
    p_.scale = p_.D == 0 ? T(1) : static_cast<T>(1.0 / std::sqrt(static_cast<double>(p_.D)));
  }
  void SetScore(const Dot& dot) { p_.scale = static_cast<T>(dot.scale); }
  void SetScore(const Cosine& cosine) {
    p_.score = ScoreKind::kCosine;
    p_.scale = static_cast<T>(cosine.scale);
    p_.eps = static_cast<T>(cosine.eps);
    q_norm_ = Buffer<T>(static_cast<std::size_t>(p_.B * p_.H * p_.L));
    k_norm_ = Buffer<T>(static_cast<std::size_t>(p_.B * p_.G * p_.S));
    RowNorms(p_.q, q_norm_.data());
    RowNorms(p_.k, k_norm_.data());
    p_.q_norm = {q_norm_.data(), {p_.B, p_.H, p_.L}};
    p_.k_norm = {k_norm_.data(), {p_.B, p_.G, p_.S}};
  }
  void SetScore(const Additive<T>& additive) {
    p_.score = ScoreKind::kAdditive;
    p_.parameter = parameter_.Pack(additive.w);
    if (additive.w.shape[0] == 1) p_.parameter.strides[0] = 0;
  }
  void SetScore(const Gaussian<T>& gaussian) {
    p_.score = ScoreKind::kGaussian;
    SetPrecision(gaussian.precision);
  }
  void SetScore(const Compact<T>& compact) {
    p_.score = ScoreKind::kCompact;
    p_.kernel = compact.kernel;
    SetPrecision(compact.precision);
  }
  void SetPrecision(const TensorView<const T, 1>& a) {
    const Index each = a.shape[0] == 1 ? 0 : a.strides[0];  // 0: one number for every dimension
    p_.parameter = parameter_.Pack(TensorView<const T, 2>(a.data, {1, p_.D}, {0, each}));
    p_.parameter.strides[0] = 0;
    p_.shared_precision = each == 0;
  }

  void SetChange(const CustomChange<T>& change) {
    p_.change = change.rows.get();
    if (p_.change->parameters() == 0) return;
    p_.change_parameters = change_parameters_.Pack(change.parameters);
    if (change.parameters.shape[0] == 1) p_.change_parameters.strides[0] = 0;
  }

  Problem<T> p_;
  Packed<T> q_, k_, v_, parameter_, change_parameters_;
  Buffer<T> q_norm_, k_norm_;
};

// How tasks are bundled into the chunks that threads take: by sizes alone, so that the order of every sum is
// the same on any number of threads.
struct Chunks {
  Index tasks, per_chunk;
  Index count() const { return CeilDiv(tasks, per_chunk); }
};

// A chunk is worth a hand-over to another thread: some 20 to 50 µs. An element of q·k costs 1, a query
// 1000.
constexpr double kChunkWork = 1 << 19;
constexpr Index kMostChunks = 512;

template <typename T>
Chunks Bundle(const Problem<T>& p, Index tasks) {
  const double term = p.score == ScoreKind::kAdditive ? 8 : 1;
  const double row =
      1000 + static_cast<double>(p.S) * (term * static_cast<double>(p.D) + static_cast<double>(p.E));
  const double work = static_cast<double>(p.B) * static_cast<double>(p.H) * static_cast<double>(p.L) * row;
  const double chunks = std::clamp(work / kChunkWork, 1.0, static_cast<double>(kMostChunks));
  return {tasks, std::max<Index>(1, CeilDiv(tasks, static_cast<Index>(chunks)))};
}

// Runs f(chunk, first task, last task + 1) for every chunk. False when memory ran out.
template <typename T, typename F>
bool RunChunks(const AttentionOptions<T>& options, const Chunks& chunks, const F& f) {
  std::atomic<bool> enough_memory = true;
  const auto run = [&](Index chunk) {
    try {
      f(chunk, chunk * chunks.per_chunk, std::min((chunk + 1) * chunks.per_chunk, chunks.tasks));
    } catch (const std::bad_alloc&) {
      enough_memory = false;
    }
  };
  RunTasks(options, chunks.count(), run);
  return enough_memory;
}

Status OutOfMemory() {
  return Status::InvalidArgument("not enough memory for the attention's working arrays");
}

// A tensor [B, G, S, D] in the layouts that the tiled kernels ask for.
template <typename T>
class PackedTensor {
 public:
  PackedTensor(const TensorView<const T, 4>& from, bool panels, bool rows, bool clean = false) : from_(from) {
    const Index B = from.shape[0], G = from.shape[1], S = from.shape[2], D = from.shape[3];
    panels_ = {nullptr, G, CeilDiv(S, kTileKeys), D};
    if (panels) {
      panel_memory_ = Buffer<T>(static_cast<std::size_t>(panels_.size(B)));
      panels_.data = panel_memory_.data();
    }
    rows_ = {from.data, from.strides[0], from.strides[1], from.strides[2], nullptr};
    if (rows && (clean || !LiesInVectors(from))) {
      const Index width = Padded(D);
      row_memory_ = Buffer<T>(static_cast<std::size_t>(B * G * S * width));
      rows_ = {row_memory_.data(), G * S * width, S * width, width, row_memory_.data()};
    }
    if (clean) {
      spoilt_ = Buffer<std::uint8_t>(static_cast<std::size_t>(B * G * S));
      rows_.spoilt = spoilt_.data();
    }
  }

  // See Panels.
  void TakeOutWide(T widest, bool exponentials) {
    wide_ = Buffer<std::uint8_t>(
        static_cast<std::size_t>(from_.shape[0] * panels_.G * panels_.tiles * kTileKeys));
    panels_.wide = wide_.data();
    panels_.widest = widest;
    panels_.exponentials = exponentials;
  }

  Index tasks() const { return from_.shape[0] * from_.shape[1] * panels_.tiles; }
  bool Pack(Index task) const {
    const Index head = task / panels_.tiles;
    return PackTile(from_, head / panels_.G, head % panels_.G, task % panels_.tiles, panels_, rows_);
  }
  const Panels<T>& panels() const { return panels_; }
  const PaddedRows<T>& rows() const { return rows_; }

 private:
  TensorView<const T, 4> from_;
  Buffer<T> panel_memory_, row_memory_;
  Buffer<std::uint8_t> spoilt_, wide_;
  Panels<T> panels_;
  PaddedRows<T> rows_;
};

// Packs tensors in parallel. False when one of their numbers is NaN or infinite.
template <typename T>
bool PackAll(const AttentionOptions<T>& options, const std::vector<const PackedTensor<T>*>& tensors,
             bool* enough_memory) {
  Index tasks = 0;
  for (const auto* tensor : tensors) tasks += tensor->tasks();
  std::atomic<bool> finite = true;
  *enough_memory = RunChunks(options, Chunks{tasks, 8}, [&](Index, Index first, Index last) {
    for (Index task = first; task < last; ++task) {
      Index at = task;
      auto tensor = tensors.begin();
      while (at >= (*tensor)->tasks()) at -= (*tensor++)->tasks();
      if (!(*tensor)->Pack(at)) finite = false;
    }
  });
  return finite;
}

// Keys as the score asks for them.
template <typename T>
void TakeOutWide(const Problem<T>& p, PackedTensor<T>* keys) {
  if (p.score == ScoreKind::kAdditive) keys->TakeOutWide(kWidestAdditive<T>, true);
  if (p.score == ScoreKind::kGaussian) keys->TakeOutWide(std::numeric_limits<T>::max(), false);
}

// The sums of rows, for the backward pass: see TiledForwardCall.
template <typename T>
struct RowSums {
  Buffer<T> shifts, inverse_sums;
};

// The forward pass by tiles, or, with `sums`, only the sums. False when memory ran out.
template <typename T>
bool TiledForwardAll(const AttentionOptions<T>& options, const Problem<T>& p,
                     const AttentionOutputs<T>& outputs, const RowSums<T>* sums = nullptr) {
  const RowBlocks blocks(p);
  const bool here = blocks.count == p.B * p.G, narrow = HasNarrowValues(p);
  std::optional<PackedTensor<T>> keys, values;
  bool done = true;
  if (!here) {
    keys.emplace(p.k, true, false);
    values.emplace(p.v, narrow, !narrow);
    TakeOutWide(p, &*keys);
    const bool finite = PackAll<T>(options, {&*keys, &*values}, &done);
    if (done && !finite && !p.mask->none()) {
      PackAll<T>(options, {&values.emplace(p.v, narrow, !narrow, true)}, &done);
    }
  }
  TiledForwardCall<T> call{p,
                           outputs,
                           here ? Panels<T>() : keys->panels(),
                           here ? PaddedRows<T>() : values->rows(),
                           here ? Panels<T>() : values->panels(),
                           blocks,
                           here,
                           ForwardParts(p, blocks)};
  if (sums != nullptr) {
    call.shifts = sums->shifts.data();
    call.inverse_sums = sums->inverse_sums.data();
  }
  Buffer<T> states;
  if (call.parts > 1) {
    states = Buffer<T>(static_cast<std::size_t>(call.tasks() * call.state_size()));
    call.states = states.data();
  }
  done = done && RunChunks(options, Bundle(p, call.tasks()),
                           [&](Index, Index first, Index last) { TiledForwardRange(call, first, last); });
  if (done && call.parts > 1) {
    done = RunChunks(options, Bundle(p, blocks.count),
                     [&](Index, Index first, Index last) { MergeForwardRange(call, first, last); });
  }
  return done;
}

// Argmax and Sample, by tiles.
template <typename T>
bool ChooseAll(const AttentionOptions<T>& options, const Problem<T>& p, const AttentionOutputs<T>& outputs) {
  PackedTensor<T> keys(p.k, true, false);
  TakeOutWide(p, &keys);
  bool done = false;
  PackAll<T>(options, {&keys}, &done);
  const ChoiceCall<T> call{p, outputs, keys.panels(), RowBlocks(p)};
  return done && RunChunks(options, Bundle(p, call.blocks.count),
                           [&](Index, Index first, Index last) { ChoiceRange(call, first, last); });
}

template <typename T>
Status Forward(const AttentionOptions<T>& options, const AttentionInputs<T>& inputs,
               const AttentionOutputs<T>& outputs) {
  const Plan<T> plan(options, inputs);
  const Problem<T>& p = plan.problem();
  if (p.score != ScoreKind::kCompact) {
    const bool done = p.soft() ? TiledForwardAll(options, p, outputs) : ChooseAll(options, p, outputs);
    return done ? Status() : OutOfMemory();
  }
  const ForwardCall<T> call{plan.problem(), outputs};
  const bool done = RunChunks(options, Bundle(call.problem, call.tasks()),
                              [&](Index, Index first, Index last) { ForwardRange(call, first, last); });
  return done ? Status() : OutOfMemory();
}

// A key head's pairs are few enough to be one task.
template <typename T>
bool IsSmall(const Problem<T>& p) {
  return p.S <= kKeyTile && p.group * p.L * p.S * (p.D + p.E) <= Index{1} << 18;
}

// The sum of `arrays` arrays [heads, D] into dw or dprecision.
template <typename T, typename Sum>
void WriteParameter(const Sum* sums, Index arrays, Index heads, Index D, const AttentionGradients<T>& grads) {
  const auto sum = [&](Index head, Index d) {
    double total = 0;
    for (Index n = 0; n < arrays; ++n) total += static_cast<double>(sums[(n * heads + head) * D + d]);
    return total;
  };
  const auto write = [&](double value, T* to) {
    *to = static_cast<T>(grads.accumulate ? static_cast<double>(*to) + value : value);
  };
  if (grads.dw) {
    for (Index h = 0; h < grads.dw->shape[0]; ++h) {
      for (Index d = 0; d < D; ++d) write(sum(h, d), &(*grads.dw)(h, d));
    }
  } else if (grads.dprecision->shape[0] == D) {
    for (Index d = 0; d < D; ++d) write(sum(0, d), &(*grads.dprecision)(d));
  } else {
    double total = 0;
    for (Index d = 0; d < D; ++d) total += sum(0, d);
    write(total, &(*grads.dprecision)(0));
  }
}

// Whether no number is NaN or infinite, but for -inf where it is `lse`.
template <typename T, std::size_t kRank>
bool IsFinite(const TensorView<const T, kRank>& t, bool lse = false) {
  std::array<Index, kRank> at{};
  const Index width = t.shape[kRank - 1], stride = t.strides[kRank - 1];
  for (Index rows = width == 0 ? 0 : t.size() / width; rows > 0; --rows) {
    const T* row = t.data;
    for (std::size_t d = 0; d + 1 < kRank; ++d) row += at[d] * t.strides[d];
    for (Index x = 0; x < width; ++x) {
      if (!std::isfinite(row[x * stride]) && !(lse && row[x * stride] < 0)) return false;
    }
    for (std::size_t d = kRank - 1; d-- > 0 && ++at[d] == t.shape[d];) at[d] = 0;
  }
  return true;
}

// Whether no number that could spoil a masked pair is NaN or infinite.
template <typename T>
bool IsAllFinite(const AttentionOptions<T>& options, const BackwardCall<T>& call) {
  const Problem<T>& p = call.problem;
  if (p.mask->none()) return true;
  const AttentionUpstream<T>& up = call.upstream;
  if (!IsFinite(up.lse, true) || (up.dlse && !IsFinite(*up.dlse)) ||
      (up.dlog_prob && !IsFinite(*up.dlog_prob)) || (up.dweights && !IsFinite(*up.dweights))) {
    return false;
  }
  const PackedTensor<T> q(p.q, false, false), k(p.k, false, false), v(p.v, false, false);
  std::vector<const PackedTensor<T>*> tensors = {&q, &k, &v};
  std::optional<PackedTensor<T>> dout;
  if (call.upstream.dout) tensors.push_back(&dout.emplace(*call.upstream.dout, false, false));
  bool enough_memory = false;
  return PackAll<T>(options, tensors, &enough_memory) && enough_memory;
}

// The sums of all tasks, in order, into dchange.
template <typename T>
void WriteChange(const TiledBackwardCall<T>& call) {
  const TensorView<T, 2>& to = *call.gradients.dchange;
  const Problem<T>& p = call.problem;
  const Index size = call.change_size();
  for (Index row = 0; row < to.shape[0]; ++row) {
    for (Index n = 0; n < size; ++n) {
      double sum = call.gradients.accumulate ? static_cast<double>(to(row, n)) : 0.0;
      for (Index task = 0; task < call.tasks(); ++task) {
        const Index first_head = task / call.parts % p.G * p.group;
        for (Index h = first_head; h < first_head + p.group; ++h) {
          if (to.shape[0] > 1 && h != row) continue;
          sum += call.change_sums[(task * p.group + h - first_head) * size + n];
        }
      }
      to(row, n) = static_cast<T>(sum);
    }
  }
}

// Whether an lse is so far from 0 that its rounding shows in exp(s - lse): then the sums are computed again.
template <typename T>
bool HasFarLse(const BackwardCall<T>& call) {
  constexpr T kFar = 16;
  const Problem<T>& p = call.problem;
  for (Index b = 0; b < p.B; ++b) {
    for (Index h = 0; h < p.H; ++h) {
      for (Index i = 0; i < p.L; ++i) {
        const T lse = std::abs(call.upstream.lse(b, h, i));
        if (lse > kFar && std::isfinite(lse)) return true;
      }
    }
  }
  return false;
}

template <typename T>
bool RowTerms(const AttentionOptions<T>& options, const BackwardCall<T>& call) {
  const bool weights = call.upstream.dweights.has_value();
  PackedTensor<T> keys(call.problem.k, weights, false);
  TakeOutWide(call.problem, &keys);
  bool done = true;
  if (weights) PackAll<T>(options, {&keys}, &done);
  const RowTermCall<T> terms{call.problem, call.upstream, keys.panels(), RowBlocks(call.problem),
                             call.row_term};
  return done && RunChunks(options, Bundle(call.problem, terms.blocks.count),
                           [&](Index, Index first, Index last) { RowTermRange(terms, first, last); });
}

// Every gradient by tiles.
template <typename T>
bool TiledBackwardAll(const AttentionOptions<T>& options, const BackwardCall<T>& call) {
  TiledBackwardCall<T> tiled{call.problem, call.upstream, call.gradients, call.row_term};
  tiled.spoilt = !IsAllFinite(options, call);
  RowSums<T> sums;
  if (!tiled.row_in_tile() && tiled.to_scores() && HasFarLse(call)) {
    const auto size = static_cast<std::size_t>(call.problem.B * call.problem.H * call.problem.L);
    sums = {Buffer<T>(size), Buffer<T>(size)};
    if (!TiledForwardAll(options, call.problem, AttentionOutputs<T>(), &sums)) return false;
    tiled.shifts = sums.shifts.data();
    tiled.inverse_sums = sums.inverse_sums.data();
  }
  std::optional<BiasGradient<T>> bias;
  Buffer<double> bias_sums;
  if (call.gradients.dbias) {
    tiled.bias = &bias.emplace(call.problem, *call.gradients.dbias, call.gradients.accumulate);
  }
  tiled.parts = BackwardParts(call.problem, tiled.bound_tasks());
  if (bias) {
    bias->SetParts(tiled.parts);
    bias_sums = Buffer<double>(static_cast<std::size_t>(bias->sums_size()));
    bias->sums = bias_sums.data();
    std::fill_n(bias->sums, bias->sums_size(), 0.0);
  }
  const AttentionGradients<T>& grads = call.gradients;
  Buffer<double> parameter_sums;
  if (grads.dw || grads.dprecision) {
    tiled.parameter_heads = grads.dw ? grads.dw->shape[0] : 1;
    const auto size = static_cast<std::size_t>(tiled.tasks() * tiled.parameter_size());
    parameter_sums = Buffer<double>(size);
    std::fill_n(parameter_sums.data(), size, 0.0);
    tiled.parameter_sums = parameter_sums.data();
  }
  Buffer<T> query_gradients(static_cast<std::size_t>(tiled.tasks() * tiled.query_gradient_size()));
  tiled.query_gradients = query_gradients.data();
  Buffer<double> change_sums(
      static_cast<std::size_t>(tiled.tasks() * call.problem.group * tiled.change_size()));
  tiled.change_sums = change_sums.data();
  const Index bound = tiled.bound_tasks();
  bool done = RunChunks(
      options, Bundle(call.problem, tiled.tasks() / bound),
      [&](Index, Index first, Index last) { TiledBackwardRange(tiled, first * bound, last * bound); });
  if (done && call.gradients.dq) {
    done = RunChunks(options, Bundle(call.problem, call.problem.B * call.problem.H),
                     [&](Index, Index first, Index last) { ReduceQueryGradient(tiled, first, last); });
  }
  if (done && tiled.parameter_sums != nullptr) {
    WriteParameter(tiled.parameter_sums, tiled.tasks(), tiled.parameter_heads, call.problem.D, grads);
  }
  if (done && call.gradients.dchange) WriteChange(tiled);
  if (done && bias && (!bias->by_pair || tiled.tasks() == 0)) bias->Reduce();
  return done;
}

template <typename T>
Status Backward(const AttentionOptions<T>& options, const AttentionInputs<T>& inputs,
                const AttentionUpstream<T>& upstream, const AttentionGradients<T>& grads) {
  const Plan<T> plan(options, inputs);
  BackwardCall<T> call{plan.problem(), upstream, grads};
  const Problem<T>& p = call.problem;
  Packed<T> out, dout;
  if (upstream.dout) call.upstream.dout = dout.Pack(*upstream.dout);
  if (upstream.dout && p.soft()) call.upstream.out = out.Pack(upstream.out);

  bool done = true;
  const auto run = [&](BackwardPass pass, const Chunks& chunks) {
    done = done && RunChunks(options, chunks, [&](Index chunk, Index first, Index last) {
             BackwardRange(call, pass, chunk, first, last);
           });
  };
  const auto run_pass = [&](BackwardPass pass) { run(pass, Bundle(p, call.tasks(pass))); };

  const bool tiled = p.score != ScoreKind::kCompact;
  Buffer<T> row_term, parameter_sums;
  if (p.soft() && p.S > (tiled ? kTileKeys : kKeyTile)) {
    row_term = Buffer<T>(static_cast<std::size_t>(p.B * p.H * p.L));
    call.row_term = row_term.data();
    if (tiled) done = RowTerms(options, call);
    if (!tiled) run_pass(BackwardPass::kRowTerm);
  }
  if (tiled) return done && TiledBackwardAll(options, call) ? Status() : OutOfMemory();
  const bool parameter = grads.dw || grads.dprecision;
  const bool query = grads.dq || parameter, key = grads.dk || grads.dv;
  const bool both = query && key && IsSmall(p);
  const BackwardPass query_pass = both ? BackwardPass::kBoth : BackwardPass::kQuery;
  const Chunks query_chunks = Bundle(p, call.tasks(query_pass));
  if (parameter) {
    call.parameter_heads = grads.dw ? grads.dw->shape[0] : 1;
    const auto size = static_cast<std::size_t>(query_chunks.count() * call.parameter_heads * p.D);
    parameter_sums = Buffer<T>(size);
    std::fill_n(parameter_sums.data(), size, T(0));
    call.parameter_sums = parameter_sums.data();
  }
  if (query) run(query_pass, query_chunks);
  if (key && !both) run_pass(BackwardPass::kKey);
  if (grads.dbias) run_pass(BackwardPass::kBias);
  if (!done) return OutOfMemory();
  if (parameter) WriteParameter(call.parameter_sums, query_chunks.count(), call.parameter_heads, p.D, grads);
  return Status();
}

// 16-bit storage: the float32 path, on float32 copies of what it reads and writes.
template <typename T>
Status ForwardOf16Bits(const AttentionOptions<float>& options, const AttentionInputs<T>& inputs,
                       const AttentionOutputs<T>& outputs) {
  Float32Copies<T> copies(options);
  const AttentionInputs<float> in{copies.Read(inputs.q), copies.Read(inputs.k), copies.Read(inputs.v)};
  const AttentionOutputs<float> out{copies.Write(outputs.out), outputs.lse, copies.Write(outputs.weights),
                                    outputs.index, outputs.log_prob};
  Status status = Forward(options, in, out);
  if (status.ok()) copies.Store();
  return status;
}

template <typename T>
Status BackwardOf16Bits(const AttentionOptions<float>& options, const AttentionInputs<T>& inputs,
                        const AttentionUpstream<T>& upstream, const AttentionGradients<T>& grads) {
  Float32Copies<T> copies(options);
  const AttentionInputs<float> in{copies.Read(inputs.q), copies.Read(inputs.k), copies.Read(inputs.v)};
  AttentionUpstream<float> up{{},
                              upstream.lse,
                              upstream.index,
                              copies.Read(upstream.dout),
                              upstream.dlse,
                              copies.Read(upstream.dweights),
                              upstream.dlog_prob};
  if (upstream.dout && std::holds_alternative<Softmax>(options.normalizer))
    up.out = copies.Read(upstream.out);
  const bool add = grads.accumulate;
  const AttentionGradients<float> out{copies.Write(grads.dq, add),
                                      copies.Write(grads.dk, add),
                                      copies.Write(grads.dv, add),
                                      grads.dbias,
                                      grads.dw,
                                      grads.dprecision,
                                      grads.dchange,
                                      add};
  Status status = Backward(options, in, up, out);
  if (status.ok()) copies.Store();
  return status;
}

}  // namespace
}  // namespace engine

template <typename T>
Status AttentionForward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                        const AttentionOutputs<T>& outputs) {
  if (Status status = engine::ChooseTarget(); !status.ok()) return status;
  if (Status status = engine::ValidateForward(options, inputs, outputs); !status.ok()) return status;
  try {
    if constexpr (sizeof(T) == 2) {
      return engine::ForwardOf16Bits(options, inputs, outputs);
    } else {
      return engine::Forward(options, inputs, outputs);
    }
  } catch (const std::bad_alloc&) {
    return engine::OutOfMemory();
  }
}

template <typename T>
Status AttentionBackward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                         const AttentionUpstream<T>& upstream, const AttentionGradients<T>& gradients) {
  if (Status status = engine::ChooseTarget(); !status.ok()) return status;
  if (Status status = engine::ValidateBackward(options, inputs, upstream, gradients); !status.ok()) {
    return status;
  }
  try {
    if constexpr (sizeof(T) == 2) {
      return engine::BackwardOf16Bits(options, inputs, upstream, gradients);
    } else {
      return engine::Backward(options, inputs, upstream, gradients);
    }
  } catch (const std::bad_alloc&) {
    return engine::OutOfMemory();
  }
}

template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<float>&,
                                 const AttentionOutputs<float>&);
template Status AttentionForward(const AttentionOptions<double>&, const AttentionInputs<double>&,
                                 const AttentionOutputs<double>&);
template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<BFloat16>&,
                                 const AttentionOutputs<BFloat16>&);
template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<Float16>&,
                                 const AttentionOutputs<Float16>&);
template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<float>&,
                                  const AttentionUpstream<float>&, const AttentionGradients<float>&);
template Status AttentionBackward(const AttentionOptions<double>&, const AttentionInputs<double>&,
                                  const AttentionUpstream<double>&, const AttentionGradients<double>&);
template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<BFloat16>&,
                                  const AttentionUpstream<BFloat16>&, const AttentionGradients<BFloat16>&);
template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<Float16>&,
                                  const AttentionUpstream<Float16>&, const AttentionGradients<Float16>&);

const char* InstructionSet() { return engine::ChooseTarget().ok() ? engine::KernelTarget() : "none"; }

}  // namespace regard
