#include "data/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Logits(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::vector<std::int64_t> Ids(const std::vector<Candidate>& candidates) {
  std::vector<std::int64_t> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.id);
  return ids;
}

void ExpectProbabilities(const std::vector<Candidate>& candidates, const std::vector<double>& expected) {
  ASSERT_EQ(candidates.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(candidates[i].probability, expected[i], 1e-6);
}

// Text case 14.
TEST(Sampling, TopPKeepsTheFewestThatReachIt) {
  const std::vector<float> logits = Logits({.1, .4, .2, .3});
  const std::vector<Candidate> three = NextTokens(logits, {.top_p = .8});
  EXPECT_THAT(Ids(three), ElementsAre(1, 3, 2));
  ExpectProbabilities(three, {.4 / .9, .3 / .9, .2 / .9});
  EXPECT_THAT(Ids(NextTokens(logits, {.top_p = .7})), ElementsAre(1, 3));
  EXPECT_THAT(Ids(NextTokens(logits, {.top_p = 1})), ElementsAre(0, 1, 2, 3));
}

// Text case 14.
TEST(Sampling, TopPZeroTemperatureZeroAndTopKOneAreTheMostLikely) {
  const std::vector<float> logits = Logits({.1, .4, .2, .4});  // the first of equals
  for (const SamplingOptions& options :
       {SamplingOptions{.top_p = 0}, SamplingOptions{.temperature = 0}, SamplingOptions{.top_k = 1}}) {
    const std::vector<Candidate> one = NextTokens(logits, options);
    EXPECT_THAT(Ids(one), ElementsAre(1));
    ExpectProbabilities(one, {1});
    Random random(1), untouched(1);
    EXPECT_EQ(SampleToken(logits, options, {}, random), 1);
    EXPECT_EQ(random.Next(), untouched.Next());
  }
  EXPECT_THAT(Ids(NextTokens(logits, {.min_p = 1})), ElementsAre(1, 3));
}

// Text case 14.
TEST(Sampling, TopKOverTheVocabularyIsAll) {
  const std::vector<float> logits = Logits({.1, .4, .2, .3});
  const std::vector<Candidate> all = NextTokens(logits, {.top_k = 1000});
  EXPECT_THAT(Ids(all), ElementsAre(1, 3, 2, 0));
  ExpectProbabilities(all, {.4, .3, .2, .1});
  EXPECT_THAT(Ids(NextTokens(logits, {.top_k = 2})), ElementsAre(1, 3));
  EXPECT_THAT(Ids(NextTokens(logits, {.top_k = 0})), ElementsAre(0, 1, 2, 3));
}

TEST(Sampling, MinPIsAShareOfTheLikeliest) {
  const std::vector<float> logits = Logits({.1, .4, .21, .29});
  EXPECT_THAT(Ids(NextTokens(logits, {.min_p = .5})), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(NextTokens(logits, {.min_p = .6})), ElementsAre(1, 3));
}

TEST(Sampling, TemperatureSharpensAndFlattens) {
  const std::vector<float> logits = Logits({.2, .8});
  ExpectProbabilities(NextTokens(logits, {.temperature = .5}), {.04 / .68, .64 / .68});
  ExpectProbabilities(NextTokens(logits, {.temperature = 2}), {1. / 3, 2. / 3});
  ExpectProbabilities(NextTokens(logits, {.temperature = 1e-300}), {0, 1});
  ExpectProbabilities(NextTokens(logits, {.temperature = 1e300}), {.5, .5});
  ExpectProbabilities(NextTokens(std::vector<float>{3e38f, -3e38f}, {}), {1, 0});
}

TEST(Sampling, RulesFollowOneAnother) {
  const std::vector<float> logits = Logits({.4, .3, .2, .1});
  // The probabilities that top-p adds up are those among the two that top-k left: .57 and .43.
  EXPECT_THAT(Ids(NextTokens(logits, {.top_k = 2, .top_p = .5})), ElementsAre(0));
  EXPECT_THAT(Ids(NextTokens(logits, {.top_p = .5})), ElementsAre(0, 1));
  // After the temperature the first has .89.
  EXPECT_THAT(Ids(NextTokens(logits, {.temperature = .1, .top_p = .9})), ElementsAre(0));
}

TEST(Sampling, RepetitionPenaltyMakesWhatCameLessLikely) {
  const std::vector<float> logits = {2, -1, 1, 0};
  const std::vector<std::int64_t> previous = {1, 0, 0};
  const std::vector<Candidate> candidates = NextTokens(logits, {.repetition_penalty = 2}, previous);
  const std::vector<double> expected = {std::exp(1), std::exp(-2), std::exp(1), 1};  // once each
  const double sum = expected[0] + expected[1] + expected[2] + expected[3];
  ExpectProbabilities(candidates,
                      {expected[0] / sum, expected[1] / sum, expected[2] / sum, expected[3] / sum});
  EXPECT_THAT(Ids(NextTokens(logits, {.repetition_penalty = 3, .temperature = 0}, previous)), ElementsAre(2));
}

TEST(Sampling, ExcludedTokensNeverCome) {
  const std::vector<float> logits = {-kInfinity, 1, -kInfinity, 0};
  EXPECT_THAT(Ids(NextTokens(logits, {.repetition_penalty = 2}, std::vector<std::int64_t>{0})),
              ElementsAre(1, 3));
  EXPECT_THAT(Ids(NextTokens(logits, {.top_k = 3})), ElementsAre(1, 3));
}

// Straight from the definitions, without sorting anything away.
std::vector<double> Expected(const std::vector<float>& logits, const SamplingOptions& options) {
  const std::size_t n = logits.size();
  std::vector<double> p(n);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += p[i] = std::exp(double{logits[i]} / options.temperature);
  const std::vector<float>& l = logits;
  const auto before = [&](std::size_t j, std::size_t i) { return l[j] > l[i] || (l[j] == l[i] && j < i); };
  const auto normalize = [&] {
    sum = 0;
    for (const double x : p) sum += x;
    for (double& x : p) x /= sum;
  };
  const auto keep_if = [&](const auto& test) {
    std::vector<bool> kept(n);
    for (std::size_t i = 0; i < n; ++i) kept[i] = test(i);
    for (std::size_t i = 0; i < n; ++i) p[i] *= kept[i];
    normalize();
  };
  normalize();
  if (options.top_k > 0) {
    keep_if([&](std::size_t i) {
      std::int64_t rank = 0;
      for (std::size_t j = 0; j < n; ++j) rank += before(j, i);
      return rank < options.top_k;
    });
  }
  keep_if([&](std::size_t i) {
    double above = 0;
    bool first = true;
    for (std::size_t j = 0; j < n; ++j) {
      if (!before(j, i)) continue;
      above += p[j];
      first = false;
    }
    return first || options.top_p == 1 || above < options.top_p - 1e-7;
  });
  const double most = *std::max_element(p.begin(), p.end());
  keep_if([&](std::size_t i) { return p[i] >= options.min_p * most; });
  return p;
}

TEST(Sampling, RandomLogitsByTheDefinitions) {
  Random random(7);
  const auto uniform = [&random] { return static_cast<double>(random.Below(1000)) / 1000; };
  for (int round = 0; round < 3000; ++round) {
    std::vector<float> logits(1 + random.Below(12));
    for (float& logit : logits) logit = static_cast<float>(random.Below(9)) - 4;  // with ties
    const SamplingOptions options{.temperature = .1 + 2 * uniform(),
                                  .top_k = static_cast<std::int64_t>(random.Below(14)),
                                  .top_p = random.Below(3) == 0 ? 1 : uniform(),
                                  .min_p = random.Below(3) == 0 ? 0 : uniform() + 1e-4};
    const std::vector<double> expected = Expected(logits, options);
    std::vector<double> got(logits.size());
    for (const Candidate& candidate : NextTokens(logits, options))
      got[static_cast<std::size_t>(candidate.id)] = candidate.probability;
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-12) << round << " " << i;
  }
}

TEST(Sampling, DrawnAsOftenAsLikely) {
  const std::vector<double> probabilities = {.5, .25, .2, .05};
  const std::vector<float> logits = Logits(probabilities);
  std::vector<int> drawn(4);
  Random random(11);
  for (int i = 0; i < 40000; ++i) ++drawn[static_cast<std::size_t>(SampleToken(logits, {}, {}, random))];
  for (std::size_t i = 0; i < 4; ++i) {
    const double deviation = std::sqrt(40000 * probabilities[i] * (1 - probabilities[i]));
    EXPECT_NEAR(drawn[i], 40000 * probabilities[i], 4 * deviation);
  }
}

TEST(Sampling, TheSameSeedTheSameTokens) {
  const std::vector<float> logits(100);
  Random first(5), second(5);
  std::vector<std::int64_t> tokens;
  for (int i = 0; i < 6; ++i) {
    tokens.push_back(SampleToken(logits, {}, {}, first));
    EXPECT_EQ(SampleToken(logits, {}, {}, second), tokens.back());
  }
  EXPECT_THAT(tokens, ElementsAre(75, 23, 9, 18, 38, 98));  // pinned: the same text from another build
}

TEST(Sampling, WrongArgumentsAreNamed) {
  const auto error = [](const SamplingOptions& options) { return ErrorOf([&] { CheckSampling(options); }); };
  EXPECT_EQ(error({}), "no error");
  EXPECT_THAT(error({.repetition_penalty = 0}), HasSubstr("repetition penalty 0; expected"));
  EXPECT_THAT(error({.temperature = -1}), HasSubstr("temperature -1; expected"));
  EXPECT_THAT(error({.temperature = kNaN}), HasSubstr("temperature nan; expected"));
  EXPECT_THAT(error({.top_k = -1}), HasSubstr("top-k -1; expected"));
  EXPECT_THAT(error({.top_p = 1.5}), HasSubstr("top-p 1.5; expected"));
  EXPECT_THAT(error({.min_p = -.1}), HasSubstr("min-p -0.1; expected"));
  const auto logits_error = [](const std::vector<float>& logits) {
    return ErrorOf([&] { NextTokens(logits, {}); });
  };
  EXPECT_THAT(logits_error({0, kNaN}), HasSubstr("the logit of token 1 is nan"));
  EXPECT_THAT(logits_error({kInfinity}), HasSubstr("the logit of token 0 is inf"));
  EXPECT_THAT(logits_error({-kInfinity}), HasSubstr("none of the 1 tokens"));
  EXPECT_THAT(logits_error({}), HasSubstr("none of the 0 tokens"));
  EXPECT_THAT(ErrorOf([] {
                NextTokens(std::vector<float>{0}, {.repetition_penalty = 2}, std::vector<std::int64_t>{1});
              }),
              HasSubstr("token 1 came before; expected 0 to 0"));
}

}  // namespace
}  // namespace regard::data
