// How a row of scores becomes a row of weights.
#ifndef REGARD_NORMALIZER_H_
#define REGARD_NORMALIZER_H_

#include <cstdint>
#include <variant>

namespace regard {

// p_j = exp(s_j) / sum_j exp(s_j)
struct Softmax {};

// p_j = 1 for the largest score (the first of equals), else 0. The gradient of `out` goes to v only; those of
// `lse` and `log_prob` go to the scores.
struct Argmax {};

// p_j = 1 for one key drawn from the softmax, else 0: the largest of s_j + Gumbel noise (Gumbel 1954;
// Maddison et al. 2014, "A* sampling"). The noise is a pure function of the seed and (b, h, i, j). The
// gradient of `out` goes to v only; those of `lse` and `log_prob` go to the scores.
struct Sample {
  std::uint64_t seed = 0;
};

using Normalizer = std::variant<Softmax, Argmax, Sample>;

// Weights are multiplied by 1 / (1 - probability) or, with that probability, by 0, after normalising
// (Srivastava et al. 2014). The decision is a pure function of the seed and (b, h, i, j).
struct Dropout {
  double probability = 0.0;  // 0 <= probability < 1
  std::uint64_t seed = 0;
};

}  // namespace regard

#endif  // REGARD_NORMALIZER_H_
