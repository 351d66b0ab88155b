// Which keys a query may see. Every part that is given must allow a pair (i, j) of query and key.
// A mask is a predicate: what it excludes does not exist, whatever number stands there.
#ifndef REGARD_MASK_H_
#define REGARD_MASK_H_

#include <cstdint>
#include <optional>

#include "regard/custom.h"
#include "regard/score.h"
#include "regard/tensor_view.h"

namespace regard {

// j <= i', with i' the key that query i stands at
struct Causal {
  Corner corner = Corner::kTopLeft;
};

// -left <= j - i' <= right; a side that is not given is unbounded
struct Window {
  std::optional<std::int64_t> left;
  std::optional<std::int64_t> right;
  Corner corner = Corner::kTopLeft;
};

// j < n, with n in 0..S (anything else is an error)
struct Lengths {
  TensorView<const std::int64_t, 2> lengths;  // [B, 1], or [B, L]: one a query
};

// Packed sequences: a query sees the keys that carry its own number
struct Segments {
  TensorView<const std::int64_t, 2> query;  // [B or 1, L]
  TensorView<const std::int64_t, 2> key;    // [B or 1, S]
};

// A map of blocks: the pair is allowed when its block is true
struct Blocks {
  TensorView<const bool, 4> map;  // [B or 1, H or 1, ceil(L / query_size), ceil(S / key_size)]
  std::int64_t query_size = 0;    // queries in a block, > 0
  std::int64_t key_size = 0;      // keys in a block, > 0
};

// One boolean a pair; true takes part
struct Keep {
  TensorView<const bool, 4> keep;  // [B or 1, H or 1, L or 1, S or 1]
};

struct Mask {
  std::optional<Causal> causal;
  std::optional<Window> window;
  std::optional<Lengths> lengths;
  std::optional<Segments> segments;
  std::optional<Blocks> blocks;
  std::optional<Keep> keep;
  bool exclude_self = false;         // j != i: leave one out
  std::optional<CustomMask> custom;  // a predicate of the caller's own
};

}  // namespace regard

#endif  // REGARD_MASK_H_
