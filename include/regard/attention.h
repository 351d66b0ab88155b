// Attention, forward and backward.
//
//   s_ij = score(q_i, k_j), then softcap, then a change of the caller's own, then bias, then ALiBi
//   p_i. = normalise_j { s_ij : the mask allows (i, j) }
//   o_i  = sum_j dropout(p_ij) v_j
//
// Sizes: B batches, H query heads, G key heads (H % G == 0; query head h reads key head h / (H / G)), L
// queries, S keys, D query and key width, E value width. Any size may be 0.
//
// T is what q, k, v, out, weights and their gradients are stored in: float, double, BFloat16 or Float16. All
// else, scores and sums among it, is SumType<T>: double for double, float for the others.
//
// A query that may see no key gives 0: out 0, weights 0, lse -inf, index -1, log_prob 0, every gradient 0.
// What is masked changes nothing, be it NaN. The same input gives the same bits on any number of threads.
// Memory is O(L + S); only `weights` and a bias gradient, when asked for, are larger.
#ifndef REGARD_ATTENTION_H_
#define REGARD_ATTENTION_H_

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>

#include "regard/custom.h"
#include "regard/half.h"
#include "regard/mask.h"
#include "regard/normalizer.h"
#include "regard/score.h"
#include "regard/status.h"
#include "regard/tensor_view.h"

namespace regard {

// Runs task(0) .. task(count - 1), in any order and on any threads, and returns when all are done.
using ParallelFor = std::function<void(std::int64_t count, const std::function<void(std::int64_t)>& task)>;

// T is the SumType of the tensors: tensors of BFloat16 or Float16 take AttentionOptions<float>.
template <std::floating_point T>
struct AttentionOptions {
  Score<T> score = ScaledDot{};
  std::optional<double> softcap;               // c > 0: s becomes c tanh(s / c)
  std::optional<CustomChange<T>> change;       // s becomes change(s)
  std::optional<TensorView<const T, 4>> bias;  // [B or 1, H or 1, L or 1, S or 1], added to s
  std::optional<Alibi<T>> alibi;
  Mask mask;
  Normalizer normalizer = Softmax{};
  Dropout dropout;
  int threads = 0;           // 0: as many as the machine has cores
  ParallelFor parallel_for;  // empty: the engine's own threads
};

template <typename T>
struct AttentionInputs {
  TensorView<const T, 4> q;  // [B, H, L, D]
  TensorView<const T, 4> k;  // [B, G, S, D]
  TensorView<const T, 4> v;  // [B, G, S, E]
};

// All are overwritten. `out` is needed; the rest is computed when given.
template <typename T>
struct AttentionOutputs {
  TensorView<T, 4> out;                              // [B, H, L, E]
  std::optional<TensorView<SumType<T>, 3>> lse;      // [B, H, L]: log sum_j exp(s_ij)
  std::optional<TensorView<T, 4>> weights;           // [B, H, L, S]: p before dropout
  std::optional<TensorView<std::int64_t, 3>> index;  // [B, H, L]: the chosen key (Argmax, Sample)
  std::optional<TensorView<SumType<T>, 3>>
      log_prob;  // [B, H, L]: log softmax of the chosen key (Argmax, Sample)
};

template <typename T>
Status AttentionForward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                        const AttentionOutputs<T>& outputs);

// What the forward pass gave, and the gradient of the loss by its outputs.
template <typename T>
struct AttentionUpstream {
  TensorView<const T, 4> out;                                // [B, H, L, E], as the forward pass wrote it
  TensorView<const SumType<T>, 3> lse;                       // [B, H, L], as the forward pass wrote it
  std::optional<TensorView<const std::int64_t, 3>> index;    // [B, H, L]: needed with Argmax and Sample
  std::optional<TensorView<const T, 4>> dout;                // [B, H, L, E]
  std::optional<TensorView<const SumType<T>, 3>> dlse;       // [B, H, L]
  std::optional<TensorView<const T, 4>> dweights;            // [B, H, L, S]
  std::optional<TensorView<const SumType<T>, 3>> dlog_prob;  // [B, H, L]
};

// Each is computed when given. Overwritten, or added to where `accumulate` is set.
template <typename T>
struct AttentionGradients {
  std::optional<TensorView<T, 4>> dq;                   // [B, H, L, D]
  std::optional<TensorView<T, 4>> dk;                   // [B, G, S, D]
  std::optional<TensorView<T, 4>> dv;                   // [B, G, S, E]
  std::optional<TensorView<SumType<T>, 4>> dbias;       // the shape of bias
  std::optional<TensorView<SumType<T>, 2>> dw;          // the shape of w (Additive, CustomScore)
  std::optional<TensorView<SumType<T>, 1>> dprecision;  // the shape of the precision (Gaussian, Compact)
  std::optional<TensorView<SumType<T>, 2>> dchange;     // the shape of change's parameters
  bool accumulate = false;
};

template <typename T>
Status AttentionBackward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                         const AttentionUpstream<T>& upstream, const AttentionGradients<T>& gradients);

extern template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<float>&,
                                        const AttentionOutputs<float>&);
extern template Status AttentionForward(const AttentionOptions<double>&, const AttentionInputs<double>&,
                                        const AttentionOutputs<double>&);
extern template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<BFloat16>&,
                                        const AttentionOutputs<BFloat16>&);
extern template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<Float16>&,
                                        const AttentionOutputs<Float16>&);
extern template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<float>&,
                                         const AttentionUpstream<float>&, const AttentionGradients<float>&);
extern template Status AttentionBackward(const AttentionOptions<double>&, const AttentionInputs<double>&,
                                         const AttentionUpstream<double>&, const AttentionGradients<double>&);
extern template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<BFloat16>&,
                                         const AttentionUpstream<BFloat16>&,
                                         const AttentionGradients<BFloat16>&);
extern template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<Float16>&,
                                         const AttentionUpstream<Float16>&,
                                         const AttentionGradients<Float16>&);

// The instruction set that the kernels run on here ("AVX3", "AVX2", ...). REGARD_TARGET in the environment,
// read once, forces one by name; an unknown or unsupported name is said by AttentionForward's status.
const char* InstructionSet();

}  // namespace regard

#endif  // REGARD_ATTENTION_H_
