#include "data/ngrams.h"

#include <algorithm>

namespace regard::data {

NgramCounts CountNgrams(const std::vector<std::string>& tokens, std::size_t n) {
  NgramCounts counts;
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    std::string ngram = tokens[i];
    for (std::size_t j = 1; j < n; ++j) ngram += ' ' + tokens[i + j];
    ++counts[ngram];
  }
  return counts;
}

std::int64_t CommonNgrams(const NgramCounts& a, const NgramCounts& b) {
  std::int64_t common = 0;
  for (const auto& [ngram, count] : a) {
    const auto found = b.find(ngram);
    if (found != b.end()) common += std::min(count, found->second);
  }
  return common;
}

}  // namespace regard::data
