// Runs of n tokens and how often each occurs: what BLEU and ROUGE compare.
#ifndef REGARD_DATA_NGRAMS_H_
#define REGARD_DATA_NGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace regard::data {

// By the n tokens joined by spaces, so no token may have one.
using NgramCounts = std::unordered_map<std::string, std::int64_t>;

// n >= 1. Fewer than n tokens: none.
NgramCounts CountNgrams(const std::vector<std::string>& tokens, std::size_t n);

// Occurrences that both have: the sum over n-grams of the smaller count.
std::int64_t CommonNgrams(const NgramCounts& a, const NgramCounts& b);

}  // namespace regard::data

#endif  // REGARD_DATA_NGRAMS_H_
