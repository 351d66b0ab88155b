// The forward pass over tiles, on packed keys and values.
#ifndef REGARD_ENGINE_KERNELS_TILED_FORWARD_H_
#define REGARD_ENGINE_KERNELS_TILED_FORWARD_H_

#include "engine/kernels/pack.h"
#include "engine/kernels/problem.h"
#include "engine/kernels/tiles.h"
#include "regard/attention.h"

namespace regard::engine {

// Values of so few numbers that a vector holds one number of several keys rather than the numbers of one.
template <typename T>
bool HasNarrowValues(const Problem<T>& p) {
  return p.E <= 4;
}

template <typename T>
struct TiledForwardCall {
  const Problem<T>& problem;
  const AttentionOutputs<T>& outputs;
  Panels<T> keys;
  PaddedRows<T> values;    // not looked at where the values are narrow:
  Panels<T> value_panels;  // then these are, keys side by side
  RowBlocks blocks;        // a task is one of them
};

// Tasks first .. last - 1, on this thread.
template <typename T>
void TiledForwardRange(const TiledForwardCall<T>& call, Index first, Index last);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_TILED_FORWARD_H_
