#include "data/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "engine/base/error.h"

namespace regard::data {
namespace {

// While the rules are applied, `probability` holds a logit or a weight that is not normalised.
using Candidates = std::vector<Candidate>;

bool Likelier(const Candidate& a, const Candidate& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
}

Candidates ReadLogits(std::span<const float> logits) {
  Candidates candidates;
  candidates.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (std::isnan(logit) || logit == HUGE_VALF)
      throw Error(fmt::format("the logit of token {} is {}; expected a number", i, logit));
    if (logit != -HUGE_VALF) candidates.push_back({static_cast<std::int64_t>(i), logit});
  }
  if (candidates.empty())
    throw Error(fmt::format("none of the {} tokens of the vocabulary may come next", logits.size()));
  return candidates;
}

void Penalize(double penalty, std::span<const std::int64_t> previous, std::size_t vocabulary,
              Candidates& candidates) {
  const std::unordered_set<std::int64_t> seen(previous.begin(), previous.end());
  for (const std::int64_t id : seen) {
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary)
      throw Error(fmt::format("token {} came before; expected 0 to {}", id, vocabulary - 1));
  }
  for (Candidate& candidate : candidates) {
    if (!seen.contains(candidate.id)) continue;
    double& logit = candidate.probability;
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

void KeepMostLikely(std::size_t count, Candidates& candidates) {
  const std::size_t kept = std::min(count, candidates.size());
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(candidates.begin(), end, candidates.end(), Likelier);
  candidates.erase(end, candidates.end());
}

double Sum(const Candidates& candidates) {
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += candidate.probability;
  return sum;
}

void Normalize(Candidates& candidates) {
  const double sum = Sum(candidates);
  for (Candidate& candidate : candidates) candidate.probability /= sum;
}

// exp((l - max) / temperature), normalised.
void Softmax(double temperature, Candidates& candidates) {
  const double largest = std::min_element(candidates.begin(), candidates.end(), Likelier)->probability;
  for (Candidate& candidate : candidates)
    candidate.probability = std::exp((candidate.probability - largest) / temperature);
  Normalize(candidates);
}

// The shortest beginning of the sorted candidates that reaches p. Sums of probabilities are only as exact as
// the float32 logits: what lacks less than their rounding counts as reached.
void KeepTogether(double p, Candidates& candidates) {
  constexpr double kRounding = 1e-7;
  std::sort(candidates.begin(), candidates.end(), Likelier);
  double sum = 0;
  std::size_t kept = 0;
  do {
    sum += candidates[kept++].probability;
  } while (sum < p - kRounding && kept < candidates.size());
  candidates.resize(kept);
}

}  // namespace

void CheckSampling(const SamplingOptions& options) {
  const auto fail = [](const char* name, auto value, const char* expected) {
    throw UsageError(fmt::format("{} {}; expected {}", name, value, expected));
  };
  const auto is_share = [](double x) { return x >= 0 && x <= 1; };
  if (!(options.repetition_penalty > 0) || std::isinf(options.repetition_penalty))
    fail("repetition penalty", options.repetition_penalty, "a number above 0 (1: none)");
  if (!(options.temperature >= 0) || std::isinf(options.temperature))
    fail("temperature", options.temperature, "0 (the most likely token) or more");
  if (options.top_k < 0) fail("top-k", options.top_k, "0 (all) or more");
  if (!is_share(options.top_p)) fail("top-p", options.top_p, "0 to 1 (all)");
  if (!is_share(options.min_p)) fail("min-p", options.min_p, "0 (all) to 1");
}

std::vector<Candidate> NextTokens(std::span<const float> logits, const SamplingOptions& options,
                                  std::span<const std::int64_t> previous) {
  CheckSampling(options);
  Candidates candidates = ReadLogits(logits);
  if (options.repetition_penalty != 1)
    Penalize(options.repetition_penalty, previous, logits.size(), candidates);
  const std::int64_t most = options.temperature == 0 ? 1 : options.top_k;
  if (most > 0) KeepMostLikely(static_cast<std::size_t>(most), candidates);
  Softmax(options.temperature == 0 ? 1 : options.temperature, candidates);
  if (options.top_p < 1) KeepTogether(options.top_p, candidates);
  if (options.min_p > 0) {
    const double least =
        options.min_p * std::min_element(candidates.begin(), candidates.end(), Likelier)->probability;
    std::erase_if(candidates, [least](const Candidate& candidate) { return candidate.probability < least; });
  }
  Normalize(candidates);
  return candidates;
}

std::int64_t SampleToken(std::span<const float> logits, const SamplingOptions& options,
                         std::span<const std::int64_t> previous, Random& random) {
  const Candidates candidates = NextTokens(logits, options, previous);
  if (candidates.size() == 1) return candidates.front().id;
  // 53 random bits: uniform in [0, 1).
  double left = static_cast<double>(random.Next() >> 11) * 0x1p-53;
  for (const Candidate& candidate : candidates) {
    left -= candidate.probability;
    if (left < 0) return candidate.id;
  }
  // Rounding left a remainder: the last one that could have been drawn.
  return std::find_if(candidates.rbegin(), candidates.rend(),
                      [](const Candidate& c) { return c.probability > 0; })
      ->id;
}

}  // namespace regard::data
