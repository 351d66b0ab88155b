// What every dL/dp_ij of a row is corrected by in the backward pass, where a row's keys are not all in one
// tile:
//
//   t_i = dlse_i - sum_j p_ij dp_ij = dlse_i - dout_i·out_i - sum_j p_ij dweights_ij
#ifndef REGARD_ENGINE_KERNELS_ROW_TERM_H_
#define REGARD_ENGINE_KERNELS_ROW_TERM_H_

#include "engine/kernels/pack.h"
#include "engine/kernels/problem.h"
#include "engine/kernels/tiles.h"
#include "regard/attention.h"

namespace regard::engine {

template <typename T>
struct RowTermCall {
  const Problem<T>& problem;
  const AttentionUpstream<T>& upstream;  // dout and out have a last stride of 1
  Panels<T> keys;                        // needed with dweights
  RowBlocks blocks;                      // a task is one of them
  T* row_term;                           // [B, H, L]
};

// Tasks first .. last - 1, on this thread.
template <typename T>
void RowTermRange(const RowTermCall<T>& call, Index first, Index last);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_ROW_TERM_H_
