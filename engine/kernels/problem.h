// One attention call as the kernels see it: every size, stride and choice resolved.
#ifndef REGARD_ENGINE_KERNELS_PROBLEM_H_
#define REGARD_ENGINE_KERNELS_PROBLEM_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "engine/policies/mask.h"
#include "engine/policies/random.h"
#include "regard/attention.h"

namespace regard::engine {

using Index = std::int64_t;

// Widths are padded to this many elements in scratch memory, at least a vector of every instruction set.
inline constexpr Index kPad = 16;
inline Index Padded(Index n) { return (n + kPad - 1) / kPad * kPad; }

inline Index CeilDiv(Index a, Index b) { return a / b + (a % b != 0); }

// Kinds of raw score. kDot is scaled dot product as well.
enum class ScoreKind { kDot, kCosine, kAdditive, kGaussian, kCompact, kCustom };
enum class NormalizerKind { kSoftmax, kArgmax, kSample };

template <typename T>
struct Problem {
  Index B = 0, H = 0, G = 0, L = 0, S = 0, D = 0, E = 0;
  Index group = 1;  // H / G query heads share a key head

  // The last stride is 1.
  TensorView<const T, 4> q, k, v;

  ScoreKind score = ScoreKind::kDot;
  T scale = 1;                           // kDot, kCosine
  T eps = 0;                             // kCosine
  TensorView<const T, 2> parameter;      // kAdditive: w [H, D]; kGaussian: precision [H, D]; last stride 1
  bool shared_precision = false;         // kGaussian: the same for every dimension
  TensorView<const T, 3> q_norm;         // kCosine: [B, H, L]
  TensorView<const T, 3> k_norm;         // kCosine: [B, G, S]
  CompactKernel kernel{};                // kCompact: the parameter is as kGaussian's
  const ScoreRows<T>* custom = nullptr;  // kCustom: the parameter, if it has one, is as kAdditive's

  std::optional<T> softcap;
  const ChangeRows<T>* change = nullptr;
  TensorView<const T, 2> change_parameters;    // [H, n], broadcast by strides of 0; last stride 1
  std::optional<TensorView<const T, 4>> bias;  // [B, H, L, S], broadcast by strides of 0
  const T* slopes = nullptr;                   // ALiBi
  Index slopes_stride = 0, alibi_shift = 0;    // i' = i + alibi_shift
  std::optional<MaskRule> mask;

  NormalizerKind normalizer = NormalizerKind::kSoftmax;
  std::uint64_t sample_seed = 0;
  DropoutRule dropout{0.0};
  std::uint64_t dropout_seed = 0;

  // Whether a pair may not exist: by the mask, or outside of a compact kernel.
  bool leaves_out() const { return score == ScoreKind::kCompact || !mask->none(); }
  static constexpr Index kBoxDimensions = 16;

  bool soft() const { return normalizer == NormalizerKind::kSoftmax; }
  // Scores are what the tiles' loops leave, but for a factor above 0.
  bool plain() const {
    return score != ScoreKind::kCosine && score != ScoreKind::kCompact &&
           (score != ScoreKind::kDot || scale > 0) && !adjusted();
  }
  // Something comes after the raw scores.
  bool adjusted() const { return softcap || change != nullptr || bias || slopes != nullptr; }
  // A Gaussian of few dimensions, where boxes around queries and keys may show that all weights of some are
  // 0.
  bool may_be_negligible() const {
    return score == ScoreKind::kGaussian && plain() && soft() && D <= kBoxDimensions;
  }
  Index KeyHead(Index h) const { return h / group; }
  const T* ChangeParameters(Index h) const {
    return change_parameters.data + h * change_parameters.strides[0];
  }
};

// Where a row of a score matrix is: query i of head h, against keys from j0.
struct RowPlace {
  Index b, h, g, i, j0;
};

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_PROBLEM_H_
