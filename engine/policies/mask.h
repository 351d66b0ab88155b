// The mask as the kernels ask it: what about this tile, and which pairs of it are allowed?
#ifndef REGARD_ENGINE_POLICIES_MASK_H_
#define REGARD_ENGINE_POLICIES_MASK_H_

#include <cstdint>

#include "regard/mask.h"

namespace regard::engine {

class MaskRule {
 public:
  MaskRule(const Mask& mask, std::int64_t L, std::int64_t S);

  // kEmpty and kFull are certain; kPartial may be either.
  TileClass Classify(const Tile& tile) const;

  struct Range {
    std::int64_t begin, end;
  };

  // The keys that lengths, windows and the causal rule leave to query i. Other parts may take more away, but
  // not where Classify says kFull.
  Range KeysInRange(std::int64_t b, std::int64_t i) const;

  // Whether other parts are given.
  bool pairwise() const { return pairwise_; }
  // Whether every pair is allowed.
  bool none() const { return !pairwise_ && !mask_.causal && !mask_.window && !mask_.lengths; }

  // allowed[j - j0] = 0 for those keys j0 <= j < j1 that the other parts take from query i; else unchanged.
  void TakeAway(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j0, std::int64_t j1,
                std::uint8_t* allowed) const;

 private:
  TileClass ClassifyRanges(const Tile& tile) const;
  TileClass ClassifySegments(const Tile& tile) const;
  TileClass ClassifyBlocks(const Tile& tile) const;
  TileClass ClassifyKeep(const Tile& tile) const;

  Mask mask_;
  std::int64_t S_;
  std::int64_t causal_shift_ = 0, window_shift_ = 0;  // i' - i
  std::int64_t left_ = 0, right_ = 0;                 // of the window; beyond every key when unbounded
  bool pairwise_;                                     // more is asked than the range of keys
};

}  // namespace regard::engine

#endif  // REGARD_ENGINE_POLICIES_MASK_H_
