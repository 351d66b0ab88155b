#include "data/rouge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "data/ngrams.h"
#include "data/porter.h"
#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

using Tokens = std::vector<std::string>;

RougeScore Score(std::int64_t common, std::size_t hypothesis, std::size_t reference) {
  RougeScore score;
  if (common == 0) return score;
  score.precision = static_cast<double>(common) / static_cast<double>(hypothesis);
  score.recall = static_cast<double>(common) / static_cast<double>(reference);
  score.f = 2 * score.precision * score.recall / (score.precision + score.recall);
  return score;
}

RougeScore NgramScore(const Tokens& hypothesis, const Tokens& reference, std::size_t n) {
  const auto count = [n](const Tokens& tokens) { return tokens.size() < n ? 0 : tokens.size() - n + 1; };
  return Score(CommonNgrams(CountNgrams(hypothesis, n), CountNgrams(reference, n)), count(hypothesis),
               count(reference));
}

// Row i of the usual table at a time: longest[j] is of a's first i and b's first j tokens.
std::int64_t LongestCommonSubsequence(const Tokens& a, const Tokens& b) {
  std::vector<std::int64_t> longest(b.size() + 1, 0);
  for (const std::string& token : a) {
    std::int64_t diagonal = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::int64_t above = longest[j];
      longest[j] = token == b[j - 1] ? diagonal + 1 : std::max(above, longest[j - 1]);
      diagonal = above;
    }
  }
  return longest.back();
}

void KeepBetter(const RougeScore& score, RougeScore& best) {
  if (score.f > best.f) best = score;
}

void Add(const RougeScore& score, RougeScore& sum) {
  sum.precision += score.precision;
  sum.recall += score.recall;
  sum.f += score.f;
}

void Divide(double count, RougeScore& sum) {
  sum = {sum.precision / count, sum.recall / count, sum.f / count};
}

}  // namespace

Tokens RougeTokens(std::string_view text, const RougeOptions& options) {
  TrackedText lower(text);
  lower.LowerCase("");
  Tokens tokens;
  bool open = false;
  for (const char c : lower.text) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (kept && !open) tokens.emplace_back();
    if (kept) tokens.back() += c;
    open = kept;
  }
  if (options.stem) {
    for (std::string& token : tokens)
      if (token.size() > 3) token = PorterStem(std::move(token));
  }
  return tokens;
}

Rouge TextRouge(std::string_view hypothesis, const std::vector<std::string>& references,
                const RougeOptions& options) {
  if (references.empty()) throw UsageError("ROUGE: a hypothesis without a reference");
  const Tokens tokens = RougeTokens(hypothesis, options);
  Rouge best;
  for (const std::string& reference : references) {
    const Tokens expected = RougeTokens(reference, options);
    KeepBetter(NgramScore(tokens, expected, 1), best.rouge1);
    KeepBetter(NgramScore(tokens, expected, 2), best.rouge2);
    KeepBetter(Score(LongestCommonSubsequence(tokens, expected), tokens.size(), expected.size()),
               best.rougel);
  }
  return best;
}

Rouge CorpusRouge(const std::vector<std::string>& hypotheses,
                  const std::vector<std::vector<std::string>>& references, const RougeOptions& options) {
  if (hypotheses.empty() || hypotheses.size() != references.size()) {
    throw UsageError(
        fmt::format("ROUGE of {} hypotheses and {} lists of references; expected as many, at least one",
                    hypotheses.size(), references.size()));
  }
  Rouge mean;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const Rouge rouge = TextRouge(hypotheses[i], references[i], options);
    Add(rouge.rouge1, mean.rouge1);
    Add(rouge.rouge2, mean.rouge2);
    Add(rouge.rougel, mean.rougel);
  }
  for (RougeScore* score : {&mean.rouge1, &mean.rouge2, &mean.rougel})
    Divide(static_cast<double>(hypotheses.size()), *score);
  return mean;
}

}  // namespace regard::data
