// The passes over tiles, for every score but the compact kernels. False when memory ran out.
#ifndef REGARD_ENGINE_TILED_H_
#define REGARD_ENGINE_TILED_H_

#include "engine/kernels/problem.h"
#include "regard/attention.h"

namespace regard::engine {

template <typename T>
bool ForwardByTiles(const AttentionOptions<T>& options, const Problem<T>& problem,
                    const AttentionOutputs<T>& outputs);

// upstream's dout and out have a last stride of 1.
template <typename T>
bool BackwardByTiles(const AttentionOptions<T>& options, const Problem<T>& problem,
                     const AttentionUpstream<T>& upstream, const AttentionGradients<T>& gradients);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_TILED_H_
