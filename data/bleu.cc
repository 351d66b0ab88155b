#include "data/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "data/bleu_tokenize.h"
#include "data/ngrams.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

using Tokens = std::vector<std::string>;

void CheckArguments(const std::vector<std::string>& hypotheses,
                    const std::vector<std::vector<std::string>>& references, const BleuOptions& options) {
  if (hypotheses.empty() || hypotheses.size() != references.size()) {
    throw UsageError(
        fmt::format("BLEU of {} hypotheses and {} lists of references; expected as many, at least one",
                    hypotheses.size(), references.size()));
  }
  for (std::size_t i = 0; i < references.size(); ++i) {
    if (references[i].empty()) throw UsageError(fmt::format("BLEU: hypothesis {} has no reference", i + 1));
  }
  if (options.max_order < 1)
    throw UsageError(fmt::format("BLEU order {}; expected 1 or more", options.max_order));
  const std::string& smooth = options.smooth;
  if (smooth != "none" && smooth != "exp" && smooth != "floor" && smooth != "add-k") {
    throw UsageError(
        fmt::format("BLEU smoothing \"{}\" is not known; expected none, exp, floor or add-k", smooth));
  }
}

// Matches and lengths of one sentence, added to the score's.
void AddSentence(const std::string& hypothesis, const std::vector<std::string>& references,
                 const BleuOptions& options, BleuScore& score) {
  const Tokens tokens = BleuTokens(hypothesis, options.tokenize, options.lowercase);
  std::vector<Tokens> reference_tokens;
  for (const std::string& reference : references) {
    reference_tokens.push_back(BleuTokens(reference, options.tokenize, options.lowercase));
  }
  const auto length = static_cast<std::int64_t>(tokens.size());
  const auto closer = [&](const Tokens& a, const Tokens& b) {
    const auto x = static_cast<std::int64_t>(a.size()), y = static_cast<std::int64_t>(b.size());
    const auto dx = std::abs(length - x), dy = std::abs(length - y);
    return dx != dy ? dx < dy : x < y;
  };
  score.hypothesis_length += length;
  score.reference_length += static_cast<std::int64_t>(
      std::min_element(reference_tokens.begin(), reference_tokens.end(), closer)->size());
  for (std::size_t n = 1; n <= static_cast<std::size_t>(options.max_order); ++n) {
    std::vector<NgramCounts> reference_counts;
    for (const Tokens& reference : reference_tokens) reference_counts.push_back(CountNgrams(reference, n));
    for (const auto& [ngram, count] : CountNgrams(tokens, n)) {
      std::int64_t most = 0;
      for (const NgramCounts& counts : reference_counts) {
        const auto found = counts.find(ngram);
        if (found != counts.end()) most = std::max(most, found->second);
      }
      score.correct[n - 1] += std::min(count, most);
      score.total[n - 1] += count;
    }
  }
}

double SmoothValue(const BleuOptions& options) {
  if (options.smooth_value >= 0) return options.smooth_value;
  return options.smooth == "floor" ? 0.1 : 1;
}

// Brevity penalty times the geometric mean of the smoothed precisions.
void Compute(const BleuOptions& options, BleuScore& score) {
  const auto hypothesis = static_cast<double>(score.hypothesis_length);
  const auto reference = static_cast<double>(score.reference_length);
  score.brevity_penalty = hypothesis >= reference ? 1
                          : hypothesis > 0        ? std::exp(1 - reference / hypothesis)
                                                  : 0;
  if (std::all_of(score.correct.begin(), score.correct.end(), [](std::int64_t c) { return c == 0; })) return;
  double halving = 1;
  auto order = static_cast<std::size_t>(options.max_order);
  for (std::size_t n = 1; n <= score.precisions.size(); ++n) {
    const double added = options.smooth == "add-k" && n > 1 ? SmoothValue(options) : 0;
    const double correct = static_cast<double>(score.correct[n - 1]) + added;
    const double total = static_cast<double>(score.total[n - 1]) + added;
    if (total == 0) break;
    if (options.effective_order) order = n;
    if (correct > 0) {
      score.precisions[n - 1] = 100 * correct / total;
    } else if (options.smooth == "exp") {
      halving *= 2;
      score.precisions[n - 1] = 100 / (halving * total);
    } else if (options.smooth == "floor") {
      score.precisions[n - 1] = 100 * SmoothValue(options) / total;
    }
  }
  double logs = 0;
  for (std::size_t n = 0; n < order; ++n)
    logs += std::log(score.precisions[n]);  // log 0 = -inf: the score is 0
  score.score = score.brevity_penalty * std::exp(logs / static_cast<double>(order));
}

std::string Signature(const std::vector<std::vector<std::string>>& references, const BleuOptions& options) {
  const bool same = std::all_of(references.begin(), references.end(),
                                [&](const auto& list) { return list.size() == references.front().size(); });
  std::string smooth = options.smooth;
  if (smooth == "floor" || smooth == "add-k") smooth += fmt::format("[{:.2f}]", SmoothValue(options));
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}|version:regard-{}",
                     same ? fmt::format("{}", references.front().size()) : "var",
                     options.lowercase ? "lc" : "mixed", options.effective_order ? "yes" : "no",
                     options.tokenize, smooth, REGARD_VERSION);
}

Tokens SplitAtSpaces(std::string_view text) {
  Tokens tokens;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) tokens.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return tokens;
}

}  // namespace

std::string BleuScore::Line() const {
  std::string orders;
  for (const double precision : precisions)
    orders += fmt::format("{}{:.1f}", orders.empty() ? "" : "/", precision);
  const double ratio = reference_length == 0
                           ? 0
                           : static_cast<double>(hypothesis_length) / static_cast<double>(reference_length);
  return fmt::format("BLEU = {:.2f} {} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", score, orders,
                     brevity_penalty, ratio, hypothesis_length, reference_length);
}

BleuScore CorpusBleu(const std::vector<std::string>& hypotheses,
                     const std::vector<std::vector<std::string>>& references, const BleuOptions& options) {
  CheckArguments(hypotheses, references, options);
  const auto orders = static_cast<std::size_t>(options.max_order);
  BleuScore score;
  score.precisions.assign(orders, 0);
  score.correct.assign(orders, 0);
  score.total.assign(orders, 0);
  for (std::size_t i = 0; i < hypotheses.size(); ++i)
    AddSentence(hypotheses[i], references[i], options, score);
  Compute(options, score);
  score.signature = Signature(references, options);
  return score;
}

double SentenceBleu(const std::vector<std::string>& hypothesis, const std::vector<std::string>& reference,
                    int k) {
  if (k < 1) throw UsageError(fmt::format("sentence BLEU to {}-grams; expected 1 or more", k));
  if (hypothesis.empty()) return 0;
  const auto length = static_cast<double>(hypothesis.size());
  double score = std::exp(std::min(0.0, 1 - static_cast<double>(reference.size()) / length));
  const std::size_t orders = std::min(static_cast<std::size_t>(k), hypothesis.size());
  for (std::size_t n = 1; n <= orders; ++n) {
    const std::int64_t matches = CommonNgrams(CountNgrams(hypothesis, n), CountNgrams(reference, n));
    const double precision = static_cast<double>(matches) / static_cast<double>(hypothesis.size() - n + 1);
    score *= std::pow(precision, std::pow(0.5, static_cast<double>(n)));
  }
  return score;
}

double SentenceBleu(std::string_view hypothesis, std::string_view reference, int k) {
  return SentenceBleu(SplitAtSpaces(hypothesis), SplitAtSpaces(reference), k);
}

std::string BleuTokenize(std::string_view line, const std::string& tokenize) {
  return fmt::format("{}", fmt::join(BleuTokens(line, tokenize, false), " "));
}

}  // namespace regard::data
