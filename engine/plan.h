// A call's problem, and how its work is cut into tasks for threads.
#ifndef REGARD_ENGINE_PLAN_H_
#define REGARD_ENGINE_PLAN_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <new>

#include "engine/base/memory.h"
#include "engine/kernels/pack.h"
#include "engine/kernels/problem.h"
#include "engine/run_tasks.h"
#include "regard/attention.h"

namespace regard::engine {

// Calls f(first element of a row) for every row, last dimension apart, in order, while f is true. Returns
// whether all were.
template <typename T, std::size_t kRank, typename F>
bool EveryRow(const TensorView<T, kRank>& t, const F& f) {
  std::array<Index, kRank> at{};
  const Index width = t.shape[kRank - 1];
  for (Index rows = width == 0 ? 0 : t.size() / width; rows > 0; --rows) {
    T* row = t.data;
    for (std::size_t d = 0; d + 1 < kRank; ++d) row += at[d] * t.strides[d];
    if (!f(row)) return false;
    for (std::size_t d = kRank - 1; d-- > 0 && ++at[d] == t.shape[d];) at[d] = 0;
  }
  return true;
}

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
    T* to = copy_.data();
    EveryRow(view, [&](const T* from) {
      for (Index x = 0; x < width; ++x) *to++ = from[x * view.strides[kRank - 1]];
      return true;
    });
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
    SetW(additive.w);
  }
  void SetScore(const CustomScore<T>& score) {
    p_.score = ScoreKind::kCustom;
    p_.custom = score.rows.get();
    if (p_.custom->weighted()) SetW(score.w);
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
  void SetW(const TensorView<const T, 2>& w) {
    p_.parameter = parameter_.Pack(w);
    if (w.shape[0] == 1) p_.parameter.strides[0] = 0;
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
// 1000. Where one or two queries read all keys and values, an element costs what it takes to fetch it.
constexpr double kChunkWork = 1 << 19;
constexpr Index kMostChunks = 512;

template <typename T>
Chunks Bundle(const Problem<T>& p, Index tasks) {
  const double term = p.score == ScoreKind::kAdditive || p.score == ScoreKind::kCustom ? 8 : 1;
  const double element = p.L <= 2 ? 8 : 1;
  const double row = 1000 + static_cast<double>(p.S) * element *
                                (term * static_cast<double>(p.D) + static_cast<double>(p.E));
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

}  // namespace regard::engine

#endif  // REGARD_ENGINE_PLAN_H_
