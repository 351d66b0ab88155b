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

// Whether a call is computed a query to a lane, by small-inl.h.
template <typename T>
bool IsSmall(const Problem<T>& p, const AttentionOutputs<T>& outputs) {
  return RowBlocks(p).heads == 1 && p.S > 0 && p.S <= 64 && p.score == ScoreKind::kDot && p.plain() &&
         !outputs.weights && !p.dropout.active() && !p.mask->pairwise();
}

template <typename T>
struct TiledForwardCall {
  const Problem<T>& problem;
  const AttentionOutputs<T>& outputs;
  Panels<T> keys;
  PaddedRows<T> values;    // not looked at where the values are narrow:
  Panels<T> value_panels;  // then these are, keys side by side
  RowBlocks blocks;

  // Where a tile is met by one block only, nothing is packed before: keys, values and value_panels have no
  // data, and each tile is packed where it is used.
  bool pack_here = false;
  bool small = false;   // IsSmall, and all is wanted; with pack_here
  bool finite = false;  // keys and values are known to be

  // Where there are few blocks, each is split into parts of its keys, whose states (`state_size` numbers
  // each) are then merged.
  Index parts = 1;
  T* states = nullptr;

  // Where these are given, they are all that is computed, [B, H, L]: p_ij = 2^(s_ij - shift_i) inverse_sum_i,
  // s an exponent of 2; inverse_sum is 0 for a row that sees nothing.
  T* shifts = nullptr;
  T* inverse_sums = nullptr;

  Index tasks() const { return blocks.count * parts; }  // a task is a part of a block
  Index state_size() const {
    return blocks.rows() * (1 + kPad + std::max(Padded(problem.E), Index{4} * kPad));
  }
};

// Enough parts for the threads of a large machine; a number that depends on sizes alone.
template <typename T>
Index ForwardParts(const Problem<T>& p, const RowBlocks& blocks) {
  const Index tiles = CeilDiv(p.S, kTileKeys);
  return std::clamp<Index>(16 / std::max<Index>(1, blocks.count), 1, std::max<Index>(1, tiles / 2));
}

// Tasks first .. last - 1, on this thread.
template <typename T>
void TiledForwardRange(const TiledForwardCall<T>& call, Index first, Index last);

// Where blocks have parts: what blocks first .. last - 1 give.
template <typename T>
void MergeForwardRange(const TiledForwardCall<T>& call, Index first, Index last);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_TILED_FORWARD_H_
