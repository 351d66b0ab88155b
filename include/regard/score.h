// How a query is compared with a key: s = score(q, k), and what is done to the score before the mask.
#ifndef REGARD_SCORE_H_
#define REGARD_SCORE_H_

#include <optional>
#include <variant>

#include "regard/custom.h"
#include "regard/tensor_view.h"

namespace regard {

// s = scale q·k
struct Dot {
  double scale = 1.0;
};

// s = q·k / sqrt(D)  (Vaswani et al. 2017, "Attention is all you need", section 3.2.1);
// 0 where D is 0
struct ScaledDot {};

// s = scale q·k / max(|q||k|, eps)
struct Cosine {
  double scale = 1.0;
  double eps = 1e-8;
};

// s = w·tanh(q + k), with q and k already projected to the hidden width D
// (Bahdanau et al. 2015, "Neural machine translation by jointly learning to align and translate", appendix
// A.1.2)
template <typename T>
struct Additive {
  TensorView<const T, 2> w;  // [H, D], or [1, D] for the same weight in every head
};

// s = -1/2 |precision ∘ (q - k)|²  (Nadaraya 1964 and Watson 1964, with a Gaussian kernel of width 1 /
// precision)
template <typename T>
struct Gaussian {
  TensorView<const T, 1> precision;  // [1], or [D]: one a dimension
};

// Kernels that are 0 outside of a ball, K(u) (Hastie, Tibshirani and Friedman 2009, "The Elements of
// Statistical Learning", sections 6.1 and 6.2; Epanechnikov 1969; tricube: Cleveland 1979).
enum class CompactKernel {
  kBoxcar,        // 1         for u <= 1
  kTriangular,    // 1 - u     for u < 1
  kEpanechnikov,  // 1 - u²    for u < 1
  kTricube,       // (1 - u³)³ for u < 1
};

// s = log K(u),  u = |precision ∘ (q - k)|: the softmax of it is the Nadaraya-Watson estimator with K of
// width 1 / precision. A key outside of the kernel does not exist for its query, as if it were masked: a
// query with no key inside gives 0. The gradient is 0 at u = 0, and everywhere for kBoxcar.
template <typename T>
struct Compact {
  CompactKernel kernel = CompactKernel::kEpanechnikov;
  TensorView<const T, 1> precision;  // [1], or [D]: one a dimension
};

template <typename T>
using Score = std::variant<ScaledDot, Dot, Cosine, Additive<T>, Gaussian<T>, Compact<T>, CustomScore<T>>;

// Where the diagonal of a score matrix with L queries and S keys starts.
enum class Corner {
  kTopLeft,      // query i stands at key i
  kBottomRight,  // query i stands at key i + S - L: the last query at the last key
};

// s - slope_h |i' - j|, with i' the key that query i stands at (Press et al. 2022, "Train short, test long")
template <typename T>
struct Alibi {
  TensorView<const T, 1> slopes;  // [H]
  Corner corner = Corner::kTopLeft;
};

}  // namespace regard

#endif  // REGARD_SCORE_H_
