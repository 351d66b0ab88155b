#include "engine/tiled.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/memory.h"
#include "engine/kernels/bias_gradient.h"
#include "engine/kernels/choice.h"
#include "engine/kernels/pack.h"
#include "engine/kernels/row_term.h"
#include "engine/kernels/tiled_backward.h"
#include "engine/kernels/tiled_forward.h"
#include "engine/plan.h"

namespace regard::engine {
namespace {

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

  // Panels in the score's form.
  void SetForm(const KeyForm<T>& form) {
    panels_.form = form;
    if (form.product) return;
    wide_ = Buffer<std::uint8_t>(
        static_cast<std::size_t>(from_.shape[0] * panels_.G * panels_.tiles * kTileKeys));
    panels_.wide = wide_.data();
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

// The sums of rows, for the backward pass: see TiledForwardCall.
template <typename T>
struct RowSums {
  Buffer<T> shifts, inverse_sums;
};

// The forward pass by tiles, or, with `sums`, only the sums. False when memory ran out.
template <typename T>
bool RunForward(const AttentionOptions<T>& options, const Problem<T>& p, const AttentionOutputs<T>& outputs,
                const RowSums<T>* sums = nullptr) {
  const RowBlocks blocks(p);
  const bool small = sums == nullptr && IsSmall(p, outputs), narrow = HasNarrowValues(p);
  const bool here = small || blocks.count == p.B * p.G;
  std::optional<PackedTensor<T>> keys, values;
  bool done = true, finite = false;
  if (!here) {
    keys.emplace(p.k, true, false);
    const bool wanted = sums == nullptr;
    values.emplace(p.v, narrow && wanted, !narrow && wanted);
    keys->SetForm(KeyFormOf(p));
    finite = PackAll<T>(options, {&*keys, &*values}, &done);
    if (done && wanted && !finite && p.leaves_out()) {
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
                           small,
                           finite,
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
  keys.SetForm(KeyFormOf(p));
  bool done = false;
  PackAll<T>(options, {&keys}, &done);
  const ChoiceCall<T> call{p, outputs, keys.panels(), RowBlocks(p)};
  return done && RunChunks(options, Bundle(p, call.blocks.count),
                           [&](Index, Index first, Index last) { ChoiceRange(call, first, last); });
}

// Whether no number is NaN or infinite, but for -inf where it is `lse`.
template <typename T, std::size_t kRank>
bool IsFinite(const TensorView<const T, kRank>& t, bool lse = false) {
  const Index width = t.shape[kRank - 1], stride = t.strides[kRank - 1];
  return EveryRow(t, [&](const T* row) {
    for (Index x = 0; x < width; ++x) {
      if (!std::isfinite(row[x * stride]) && !(lse && row[x * stride] < 0)) return false;
    }
    return true;
  });
}

// Whether no number that could spoil a masked pair is NaN or infinite.
template <typename T>
bool IsAllFinite(const AttentionOptions<T>& options, const Problem<T>& p, const AttentionUpstream<T>& up) {
  if (!IsFinite(up.lse, true) || (up.dlse && !IsFinite(*up.dlse)) ||
      (up.dlog_prob && !IsFinite(*up.dlog_prob)) || (up.dweights && !IsFinite(*up.dweights))) {
    return false;
  }
  const PackedTensor<T> q(p.q, false, false), k(p.k, false, false), v(p.v, false, false);
  std::vector<const PackedTensor<T>*> tensors = {&q, &k, &v};
  std::optional<PackedTensor<T>> dout;
  if (up.dout) tensors.push_back(&dout.emplace(*up.dout, false, false));
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
bool HasFarLse(const Problem<T>& p, const AttentionUpstream<T>& up) {
  constexpr T kFar = 16;
  return !EveryRow(up.lse, [&](const T* row) {
    for (Index i = 0; i < p.L; ++i) {
      const T lse = std::abs(row[i * up.lse.strides[2]]);
      if (lse > kFar && std::isfinite(lse)) return false;
    }
    return true;
  });
}

// What every dL/dp of a row is corrected by: see RowTermCall.
template <typename T>
bool RowTerms(const AttentionOptions<T>& options, const Problem<T>& p, const AttentionUpstream<T>& up,
              T* terms) {
  const bool weights = up.dweights.has_value();
  PackedTensor<T> keys(p.k, weights, false);
  keys.SetForm(KeyFormOf(p));
  bool done = true;
  if (weights) PackAll<T>(options, {&keys}, &done);
  const RowTermCall<T> call{p, up, keys.panels(), RowBlocks(p), terms};
  return done && RunChunks(options, Bundle(p, call.blocks.count),
                           [&](Index, Index first, Index last) { RowTermRange(call, first, last); });
}

}  // namespace

template <typename T>
bool ForwardByTiles(const AttentionOptions<T>& options, const Problem<T>& p,
                    const AttentionOutputs<T>& outputs) {
  return p.soft() ? RunForward(options, p, outputs) : ChooseAll(options, p, outputs);
}

template <typename T>
bool BackwardByTiles(const AttentionOptions<T>& options, const Problem<T>& p, const AttentionUpstream<T>& up,
                     const AttentionGradients<T>& grads) {
  TiledBackwardCall<T> tiled{p, up, grads, nullptr};
  Buffer<T> row_term;
  if (p.soft() && !tiled.row_in_tile()) {
    row_term = Buffer<T>(static_cast<std::size_t>(p.B * p.H * p.L));
    if (!RowTerms(options, p, up, row_term.data())) return false;
    tiled.row_term = row_term.data();
  }
  tiled.finite = (p.leaves_out() || p.may_be_negligible()) && IsAllFinite(options, p, up);
  tiled.spoilt = p.leaves_out() && !tiled.finite;
  RowSums<T> sums;
  if (!tiled.row_in_tile() && tiled.to_scores() && HasFarLse(p, up)) {
    const auto size = static_cast<std::size_t>(p.B * p.H * p.L);
    sums = {Buffer<T>(size), Buffer<T>(size)};
    if (!RunForward(options, p, AttentionOutputs<T>(), &sums)) return false;
    tiled.shifts = sums.shifts.data();
    tiled.inverse_sums = sums.inverse_sums.data();
  }
  std::optional<BiasGradient<T>> bias;
  Buffer<double> bias_sums;
  if (grads.dbias) {
    tiled.bias = &bias.emplace(p, *grads.dbias, grads.accumulate);
  }
  tiled.parts = BackwardParts(p, tiled.bound_tasks());
  if (bias) {
    bias->SetParts(tiled.parts);
    bias_sums = Buffer<double>(static_cast<std::size_t>(bias->sums_size()));
    bias->sums = bias_sums.data();
    std::fill_n(bias->sums, bias->sums_size(), 0.0);
  }
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
  Buffer<double> change_sums(static_cast<std::size_t>(tiled.tasks() * p.group * tiled.change_size()));
  tiled.change_sums = change_sums.data();
  const Index bound = tiled.bound_tasks();
  bool done = RunChunks(options, Bundle(p, tiled.tasks() / bound), [&](Index, Index first, Index last) {
    TiledBackwardRange(tiled, first * bound, last * bound);
  });
  if (done && grads.dq) {
    done = RunChunks(options, Bundle(p, p.B * p.H),
                     [&](Index, Index first, Index last) { ReduceQueryGradient(tiled, first, last); });
  }
  if (done && tiled.parameter_sums != nullptr) {
    WriteParameter(tiled.parameter_sums, tiled.tasks(), tiled.parameter_heads, p.D, grads);
  }
  if (done && grads.dchange) WriteChange(tiled);
  if (done && bias && (!bias->by_pair || tiled.tasks() == 0)) bias->Reduce();
  return done;
}

#define REGARD_INSTANTIATE(T)                                                                               \
  template bool ForwardByTiles(const AttentionOptions<T>&, const Problem<T>&, const AttentionOutputs<T>&);  \
  template bool BackwardByTiles(const AttentionOptions<T>&, const Problem<T>&, const AttentionUpstream<T>&, \
                                const AttentionGradients<T>&);
REGARD_INSTANTIATE(float)
REGARD_INSTANTIATE(double)
#undef REGARD_INSTANTIATE

}  // namespace regard::engine
