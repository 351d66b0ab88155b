// How the pairs of a call are cut into tiles for the register-tiled kernels.
#ifndef REGARD_ENGINE_KERNELS_TILES_H_
#define REGARD_ENGINE_KERNELS_TILES_H_

#include <algorithm>

#include "engine/kernels/problem.h"

namespace regard::engine {

// Rows of a block: queries i0 <= i < i1 of heads h0 <= h < h0 + heads, which share a key head; i runs
// fastest.
struct RowBlock {
  Index b, g, h0, heads, i0, i1;

  Index queries() const { return i1 - i0; }
  Index rows() const { return heads * queries(); }
};

// The blocks of a call. A block holds up to kBlockRows queries of one head, or all queries of several heads
// of a group, where a head has few.
inline constexpr Index kBlockRows = 96;
inline constexpr Index kTileKeys = 256;

struct RowBlocks {
  template <typename T>
  explicit RowBlocks(const Problem<T>& p)
      : H(p.H),
        G(p.G),
        L(p.L),
        group(p.group),
        heads(p.L == 0 || p.parameter.strides[0] != 0  // a parameter for each head: one head at a time
                  ? 1
                  : std::clamp<Index>(kBlockRows / p.L, 1, std::max<Index>(1, p.group))),
        queries(heads > 1 ? p.L : std::min(kBlockRows, p.L)),
        per_group(CeilDiv(p.group, heads)),
        per_head(CeilDiv(p.L, std::max<Index>(1, queries))),
        count(p.B * p.G * per_group * per_head) {}

  // The last queries come first: where a mask is causal they see the most keys.
  RowBlock operator[](Index n) const {
    const Index part = per_head - 1 - n % per_head;
    n /= per_head;
    const Index first = n % per_group * heads;
    n /= per_group;
    const Index g = n % G;
    return {n / G,
            g,
            g * group + first,
            std::min(heads, group - first),
            part * queries,
            std::min(part * queries + queries, L)};
  }

  Index rows() const { return heads * queries; }  // of the largest block

  Index H, G, L, group, heads, queries, per_group, per_head, count;
};

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_TILES_H_
