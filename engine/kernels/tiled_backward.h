// The backward pass over tiles.
#ifndef REGARD_ENGINE_KERNELS_TILED_BACKWARD_H_
#define REGARD_ENGINE_KERNELS_TILED_BACKWARD_H_

#include "engine/kernels/bias_gradient.h"
#include "engine/kernels/problem.h"
#include "engine/kernels/tiles.h"
#include "regard/attention.h"

namespace regard::engine {

// A task is a part of the keys of one key head, with all the queries of its group: every parts-th tile. It
// owns the gradients of its keys and values; what it adds to the gradient of the queries goes to an array of
// its own, which ReduceQueryGradient adds up, in order.
template <typename T>
struct TiledBackwardCall {
  const Problem<T>& problem;
  const AttentionUpstream<T>& upstream;  // dout has a last stride of 1
  const AttentionGradients<T>& gradients;
  const T* row_term;  // as in RowTermCall, for softmax; null where all keys are in one tile

  // As in TiledForwardCall; null: lse is exact enough.
  const T* shifts = nullptr;
  const T* inverse_sums = nullptr;

  // There is a mask, and a number that is NaN or infinite, perhaps in a masked pair.
  bool spoilt = false;
  bool finite = false;  // all numbers are known to be

  const BiasGradient<T>* bias = nullptr;  // null: not asked for

  Index parts = 1;
  T* query_gradients = nullptr;  // [B, G, parts, group, L, Padded(D)]

  // The gradient of a score's w or precision: an array [parameter_heads, D] for each task, summed by the
  // caller. Null when not asked for.
  double* parameter_sums = nullptr;
  Index parameter_heads = 1;

  Index parameter_size() const { return parameter_heads * problem.D; }
  // The gradient of the parameters of the caller's change, [B, G, parts, group, n].
  double* change_sums = nullptr;

  Index key_heads() const { return problem.B * problem.G; }
  Index tasks() const { return key_heads() * parts; }
  // How many tasks, one after the other, belong on one thread; the first is Task of a multiple.
  Index bound_tasks() const { return bias == nullptr ? 1 : bias->shared(); }
  // The n-th task: a part of the keys of key head g of batch b, (b G + g) parts + part.
  Index Task(Index n) const {
    const Index bound_heads = bias == nullptr ? 1 : bias->key_heads;
    const Index bound = n % bound_tasks(), owner = n / bound_tasks();
    const Index heads = problem.G / bound_heads;
    const Index g = owner / parts % heads + bound % bound_heads;
    const Index b = owner / parts / heads + bound / bound_heads;
    return (b * problem.G + g) * parts + owner % parts;
  }
  Index query_gradient_size() const { return problem.group * problem.L * Padded(problem.D); }  // of a task
  Index change_size() const { return problem.change == nullptr ? 0 : problem.change->parameters(); }
  // Whether dout meets all values, not those of chosen keys alone.
  bool to_values() const { return problem.soft() && upstream.dout; }
  // Whether the scores have a gradient.
  bool to_scores() const { return problem.soft() || upstream.dlse || upstream.dlog_prob; }
  bool row_in_tile() const { return problem.S <= kTileKeys; }
};

// Enough tasks that are not bound to others for the threads of a large machine; a number that depends on
// sizes alone.
template <typename T>
Index BackwardParts(const Problem<T>& p, Index bound_tasks) {
  const Index heads = std::max<Index>(1, p.B * p.G / bound_tasks),
              tiles = std::max<Index>(1, CeilDiv(p.S, kTileKeys));
  return std::clamp<Index>(16 / heads, 1, std::min<Index>(tiles, 8));
}

// Tasks Task(first) .. Task(last - 1), on this thread.
template <typename T>
void TiledBackwardRange(const TiledBackwardCall<T>& call, Index first, Index last);

// The sum over parts, for the queries of heads first .. last - 1 of all B * H.
template <typename T>
void ReduceQueryGradient(const TiledBackwardCall<T>& call, Index first, Index last);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_TILED_BACKWARD_H_
