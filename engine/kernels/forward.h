// The forward pass of compact kernels, row by row over blocks of queries.
#ifndef REGARD_ENGINE_KERNELS_FORWARD_H_
#define REGARD_ENGINE_KERNELS_FORWARD_H_

#include "engine/kernels/problem.h"
#include "regard/attention.h"

namespace regard::engine {

template <typename T>
struct ForwardCall {
  Problem<T> problem;
  AttentionOutputs<T> outputs;

  // A task is one block of queries of one head.
  Index query_blocks() const { return CeilDiv(problem.L, kQueryTile); }
  Index tasks() const { return problem.B * problem.H * query_blocks(); }
};

// Tasks first .. last - 1, on this thread.
template <typename T>
void ForwardRange(const ForwardCall<T>& call, Index first, Index last);

// norms(r) = |row r| of a tensor [A, N, M, D] whose last stride is 1; norms has A N M elements.
template <typename T>
void RowNorms(const TensorView<const T, 4>& rows, T* norms);

// The name of the target that the kernels are dispatched to.
const char* KernelTarget();

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_FORWARD_H_
