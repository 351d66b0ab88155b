// The backward pass of compact kernels, row by row over blocks of queries and over blocks of keys.
#ifndef REGARD_ENGINE_KERNELS_BACKWARD_H_
#define REGARD_ENGINE_KERNELS_BACKWARD_H_

#include <optional>

#include "engine/kernels/problem.h"
#include "regard/attention.h"

namespace regard::engine {

// What a pass over the pairs computes, and so what one of its tasks is.
enum class BackwardPass {
  kRowTerm,  // row_term; a block of queries of one head
  kQuery,    // dq and the parameter's gradient; a block of queries of one head
  kKey,      // dk and dv; a block of keys of one key head
  kBoth,     // kQuery and kKey in one, where all keys fit one tile; a key head
  kBias,     // dbias; a block of its elements
};

template <typename T>
struct BackwardCall {
  Problem<T> problem;
  AttentionUpstream<T> upstream;  // dout and out have a last stride of 1
  AttentionGradients<T> gradients;

  // [B, H, L]: dlse_i - sum_j p_ij dp_ij, what every dL/dp_ij of a row is corrected by. For softmax, and only
  // where a row's keys are not all in one tile.
  T* row_term = nullptr;

  // The gradient of Additive's w or of a precision: one array [parameter_heads, D] for each chunk of
  // tasks, summed by the caller. Null when not asked for.
  T* parameter_sums = nullptr;
  Index parameter_heads = 1;

  bool row_in_tile() const { return problem.S <= kKeyTile; }
  Index query_blocks() const { return CeilDiv(problem.L, kQueryTile); }
  Index key_blocks() const { return CeilDiv(problem.S, kKeyTile); }
  Index tasks(BackwardPass pass) const;
};

// Tasks first .. last - 1 of a pass, on this thread; they add their parameter gradient to parameter_sums'
// array number `chunk`.
template <typename T>
void BackwardRange(const BackwardCall<T>& call, BackwardPass pass, Index chunk, Index first, Index last);

template <typename T>
Index BackwardCall<T>::tasks(BackwardPass pass) const {
  switch (pass) {
    case BackwardPass::kRowTerm:
    case BackwardPass::kQuery:
      return problem.B * problem.H * query_blocks();
    case BackwardPass::kKey:
      return problem.B * problem.G * key_blocks();
    case BackwardPass::kBoth:
      return problem.B * problem.G;
    case BackwardPass::kBias: {
      const auto& shape = gradients.dbias->shape;
      return shape[0] * shape[1] * CeilDiv(shape[2], kQueryTile) * CeilDiv(shape[3], kKeyTile);
    }
  }
  return 0;
}

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_BACKWARD_H_
