// How the next token is chosen from the logits of a language model.
#ifndef REGARD_DATA_SAMPLING_H_
#define REGARD_DATA_SAMPLING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "data/random.h"

namespace regard::data {

// Applied in this order; what a rule leaves out has probability 0, the rest is normalised again. Of equally
// likely tokens the one with the smallest number goes first. At least one token is always left.
struct SamplingOptions {
  // Keskar et al. 2019: the logit l of every token that came before becomes l / penalty where l > 0, else
  // l * penalty. Above 0; 1: off.
  double repetition_penalty = 1;
  double temperature = 1;  // logits are divided by it; 0: the most likely token
  std::int64_t top_k = 0;  // the k most likely tokens; 0, or more than there are: all
  double top_p = 1;        // Holtzman et al. 2020: the fewest most likely tokens that together reach p, 0..1
  double min_p = 0;        // Nguyen et al. 2024: tokens at least min_p times as likely as the likeliest, 0..1
};

// Throws regard::UsageError naming an option that is out of its range.
void CheckSampling(const SamplingOptions& options);

struct Candidate {
  std::int64_t id = 0;
  double probability = 0;
};

// The tokens that may come next with their probabilities (they sum to 1); the most likely first where top_k,
// top_p or temperature 0 chose them, otherwise by number. logits [vocabulary]: -inf excludes a token.
// previous: the tokens so far, in any order. Throws regard::UsageError as CheckSampling, regard::Error for a
// logit that is NaN or +inf, when none is finite, and for a previous token outside 0..vocabulary-1.
std::vector<Candidate> NextTokens(std::span<const float> logits, const SamplingOptions& options,
                                  std::span<const std::int64_t> previous = {});

// One of NextTokens, drawn with its probability. Takes one number from random, none where there is one
// candidate.
std::int64_t SampleToken(std::span<const float> logits, const SamplingOptions& options,
                         std::span<const std::int64_t> previous, Random& random);

}  // namespace regard::data

#endif  // REGARD_DATA_SAMPLING_H_
