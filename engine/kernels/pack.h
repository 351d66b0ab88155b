// Keys and values laid out for the register-tiled kernels, once for all query heads and blocks.
#ifndef REGARD_ENGINE_KERNELS_PACK_H_
#define REGARD_ENGINE_KERNELS_PACK_H_

#include <limits>

#include "engine/base/memory.h"
#include "engine/kernels/problem.h"
#include "engine/kernels/tiles.h"

namespace regard::engine {

// How a score wants its queries and keys. Where it is no product, a row with a number beyond `widest` (or
// NaN) is wide: it is stored as 0, and its pairs are computed one by one. The others may be stored as
// exp(2x).
template <typename T>
struct KeyForm {
  bool product = true;
  T widest = 0;
  bool exponentials = false;
};

template <typename T>
KeyForm<T> KeyFormOf(const Problem<T>& p) {
  // Beyond 10, exp(2q) exp(2k) of two dimensions may overflow.
  if (p.score == ScoreKind::kAdditive) return {false, T(10), true};
  if (p.score == ScoreKind::kDot || p.score == ScoreKind::kCosine) return {};
  // Beyond a half of the largest number, q - k may overflow.
  return {false, std::numeric_limits<T>::max() / 2, false};
}

// Panels of a tensor [B, G, S, D]: kPanel rows side by side, [B, G, S / kPanel, D, kPanel], so that one
// vector holds the same dimension of several rows. S is rounded up to whole tiles; what is beyond it is 0.
//
// Keys are stored in the score's form, and those that are wide marked in `wide`.
template <typename T>
struct Panels {
  T* data = nullptr;
  Index G = 0, tiles = 0, D = 0;
  std::uint8_t* wide = nullptr;  // [B, G, tiles * kTileKeys]; null where form.product
  KeyForm<T> form{};

  Index size(Index B) const { return B * G * tiles * kTileKeys * D; }
  T* Tile(Index b, Index g, Index tile) const { return data + ((b * G + g) * tiles + tile) * kTileKeys * D; }
  std::uint8_t* Wide(Index b, Index g, Index tile) const {
    return wide == nullptr ? nullptr : wide + ((b * G + g) * tiles + tile) * kTileKeys;
  }
};

// Rows of a tensor [B, G, S, D], each of whole aligned vectors: the tensor itself where it lies so, or a
// copy, with 0 beyond D.
//
// Where a mask is given, a product with the weights would let a NaN or an infinity of a masked row through
// (0 NaN is NaN). A `clean` copy has 0 in their place, and marks the row in `spoilt`: the kernels add what it
// does to the pairs that are allowed.
template <typename T>
struct PaddedRows {
  const T* data = nullptr;
  Index batch_stride = 0, head_stride = 0, stride = 0;  // in elements
  T* copy = nullptr;                                    // null: not needed
  std::uint8_t* spoilt = nullptr;                       // [B, G, S]; null: the copy is not clean

  const T* Row(Index b, Index g, Index j) const {
    return data + b * batch_stride + g * head_stride + j * stride;
  }
};

template <typename T>
bool LiesInVectors(const TensorView<const T, 4>& t) {
  return t.shape[3] % kPad == 0 && t.strides[2] == t.shape[3] && t.strides[0] % kPad == 0 &&
         t.strides[1] % kPad == 0 && reinterpret_cast<std::uintptr_t>(t.data) % kAlignment == 0;
}

// Writes one tile of one key head, kTileKeys rows from row tile * kTileKeys on. Returns false when one of
// the tensor's numbers is NaN or infinite.
template <typename T>
bool PackTile(const TensorView<const T, 4>& from, Index b, Index g, Index tile, const Panels<T>& panels,
              const PaddedRows<T>& rows);

// norms(r) = |row r| of a tensor [A, N, M, D] whose last stride is 1; norms has A N M elements.
template <typename T>
void RowNorms(const TensorView<const T, 4>& rows, T* norms);

// The name of the target that the kernels are dispatched to.
const char* KernelTarget();

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_PACK_H_
