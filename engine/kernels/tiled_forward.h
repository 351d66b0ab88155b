// The forward pass over tiles, on packed keys and values.
#ifndef REGARD_ENGINE_KERNELS_TILED_FORWARD_H_
#define REGARD_ENGINE_KERNELS_TILED_FORWARD_H_

#include "engine/kernels/pack.h"
#include "engine/kernels/problem.h"
#include "engine/kernels/tiles.h"
#include "regard/attention.h"

namespace regard::engine {

template <typename T>
struct TiledForwardCall {
  const Problem<T>& problem;
  const AttentionOutputs<T>& outputs;
  Panels<T> keys;
  PaddedRows<T> values;
  RowBlocks blocks;  // a task is one of them
};

// Tasks first .. last - 1, on this thread.
template <typename T>
void TiledForwardRange(const TiledForwardCall<T>& call, Index first, Index last);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_TILED_FORWARD_H_
