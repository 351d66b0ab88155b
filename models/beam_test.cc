#include "models/beam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace regard::models {
namespace {

using Tokens = std::vector<std::int64_t>;
// log-probabilities of what follows a prefix, for a sentence
using Table = std::function<std::vector<float>(std::int64_t sentence, const Tokens& prefix)>;

// Follows the search with prefixes of its own, and reads the table.
class TableModel : public BeamModel {
 public:
  TableModel(Table table, std::int64_t sentences, std::int64_t beam)
      : table_(std::move(table)), beam_(beam), prefixes_(sentences * beam) {
    for (std::int64_t i = 0; i < sentences; ++i) sentences_.push_back(i);
  }

  torch::Tensor Step(const torch::Tensor& tokens) override {
    std::vector<torch::Tensor> rows, attention;
    for (std::size_t r = 0; r < prefixes_.size(); ++r) {
      prefixes_[r].push_back(tokens[static_cast<std::int64_t>(r)].item<std::int64_t>());
      const auto scores = table_(sentences_[r / beam_], Tokens(prefixes_[r].begin() + 1, prefixes_[r].end()));
      rows.push_back(torch::tensor(scores));
      // Names the step and the token that was read
      attention.push_back(
          torch::tensor({static_cast<float>(prefixes_[r].size()), static_cast<float>(prefixes_[r].back())}));
    }
    attention_ = torch::stack(attention);
    ++steps;
    return torch::stack(rows);
  }
  torch::Tensor Attention() override { return attention_; }
  void Select(const torch::Tensor& sentences, const torch::Tensor& rows) override {
    std::vector<std::int64_t> kept;
    std::vector<Tokens> prefixes;
    for (std::int64_t i = 0; i < sentences.size(0); ++i)
      kept.push_back(sentences_[sentences[i].item<std::int64_t>()]);
    for (std::int64_t r = 0; r < rows.size(0); ++r)
      prefixes.push_back(prefixes_[rows[r].item<std::int64_t>()]);
    sentences_ = kept;
    prefixes_ = prefixes;
  }

  int steps = 0;

 private:
  Table table_;
  std::int64_t beam_;
  std::vector<std::int64_t> sentences_;
  std::vector<Tokens> prefixes_;
  torch::Tensor attention_;
};

std::vector<float> Logs(std::vector<float> p) {
  for (float& v : p) v = std::log(v);
  return p;
}

DecodeOptions Options(std::int64_t beam, double penalty) {
  DecodeOptions options;
  options.beam = beam;
  options.length_penalty = penalty;
  options.attention = true;
  return options;
}

// Vocabulary of 6: pad, bos, eos, unk, 4, 5; any distribution, from a hash of what came before.
std::vector<float> Scrambled(std::int64_t sentence, const Tokens& prefix) {
  std::uint64_t x = 88172645463325252ULL + 977 * static_cast<std::uint64_t>(sentence);
  for (const std::int64_t token : prefix)
    x = (x ^ static_cast<std::uint64_t>(token + 7)) * 6364136223846793005ULL;
  std::vector<float> p;
  for (int i = 0; i < 6; ++i) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    p.push_back(static_cast<float>((x >> 40) % 1000 + 1));
  }
  float sum = 0;
  for (const float v : p) sum += v;
  for (float& v : p) v /= sum;
  return Logs(p);
}

struct Best {
  double rank = -std::numeric_limits<double>::infinity();
  Tokens tokens;
};

// Tries everything.
void Exhaust(std::int64_t sentence, Tokens& prefix, double log_prob, std::int64_t limit, double penalty,
             Best& best) {
  const auto scores = Scrambled(sentence, prefix);
  const double ended = (log_prob + scores[kEos]) / std::pow(static_cast<double>(prefix.size() + 1), penalty);
  if (ended > best.rank) best = {ended, prefix};
  if (static_cast<std::int64_t>(prefix.size()) + 1 == limit) return;
  for (std::int64_t token = kUnk; token < 6; ++token) {
    prefix.push_back(token);
    Exhaust(sentence, prefix, log_prob + scores[token], limit, penalty, best);
    prefix.pop_back();
  }
}

// Text case 14: a beam over the vocabulary.
TEST(BeamSearch, WideEnoughItFindsTheBestOfAll) {
  for (const double penalty : {0.0, 0.6, 1.0, 2.0, -0.5}) {
    const std::int64_t beam = 200, limit = 5;  // 81 live prefixes at most; the beam is over the vocabulary
    TableModel model(Scrambled, 8, beam);
    const auto found = BeamSearch(model, 8, limit, Options(beam, penalty));
    for (std::int64_t i = 0; i < 8; ++i) {
      Best best;
      Tokens prefix;
      Exhaust(i, prefix, 0, limit, penalty, best);
      EXPECT_TRUE(found[i].ended);
      EXPECT_EQ(found[i].tokens, best.tokens) << i << " with penalty " << penalty;
      EXPECT_NEAR(found[i].log_prob / std::pow(found[i].tokens.size() + 1.0, penalty), best.rank, 1e-5);
    }
  }
}

TEST(BeamSearch, OneIsGreedy) {
  TableModel model(Scrambled, 5, 1);
  const auto found = BeamSearch(model, 5, 8, Options(1, 1.0));
  for (std::int64_t i = 0; i < 5; ++i) {
    Tokens prefix;
    bool ended = false;
    while (!ended && prefix.size() < 8) {
      const auto scores = Scrambled(i, prefix);
      const auto best = std::max_element(scores.begin() + kEos, scores.end()) - scores.begin();
      if (best == kEos) {
        ended = true;
      } else {
        prefix.push_back(best);
      }
    }
    EXPECT_EQ(found[i].tokens, prefix) << i;
    EXPECT_EQ(found[i].ended, ended) << i;
  }
}

// After 4 comes the end: two tokens of probability .3. The end at once has .36.
std::vector<float> ShortOrLong(std::int64_t, const Tokens& prefix) {
  if (prefix.empty()) return Logs({.01F, .01F, .36F, .01F, .30F, .31F});
  if (prefix == Tokens{4}) return Logs({.001F, .001F, .995F, .001F, .001F, .001F});
  return Logs({.2F, .2F, .01F, .2F, .2F, .19F});
}

// Text case 15.
TEST(BeamSearch, ALongerHypothesisMayWin) {
  TableModel by_length(ShortOrLong, 1, 3), by_probability(ShortOrLong, 1, 3);
  EXPECT_EQ(BeamSearch(by_length, 1, 10, Options(3, 1.0))[0].tokens, Tokens{4});
  EXPECT_EQ(BeamSearch(by_probability, 1, 10, Options(3, 0.0))[0].tokens, Tokens{});
}

// Text case 15.
TEST(BeamSearch, StopsOnceNothingCanWin) {
  TableModel model(ShortOrLong, 1, 3);
  BeamSearch(model, 1, 100, Options(3, 0.0));
  EXPECT_EQ(model.steps, 1);  // .36 is more than any other start has
}

TEST(BeamSearch, AtTheLimitItHasNotEnded) {
  const auto never = [](std::int64_t, const Tokens&) { return Logs({.1F, .1F, 1e-30F, .2F, .3F, .3F}); };
  TableModel model(never, 1, 2);
  const auto found = BeamSearch(model, 1, 3, Options(2, 1.0));
  EXPECT_FALSE(found[0].ended);
  EXPECT_EQ(found[0].tokens, (Tokens{4, 4, 4}));  // of equals the first
  EXPECT_NEAR(found[0].log_prob, 3 * std::log(.3), 1e-5);
  EXPECT_EQ(found[0].attention.sizes(), (std::vector<std::int64_t>{3, 2}));
}

TEST(BeamSearch, AttentionIsThatOfTheWinnersSteps) {
  TableModel model(ShortOrLong, 1, 3);
  const auto found = BeamSearch(model, 1, 10, Options(3, 1.0));
  ASSERT_EQ(found[0].attention.sizes(), (std::vector<std::int64_t>{2, 2}));
  EXPECT_TRUE(torch::equal(found[0].attention, torch::tensor({{1.F, 1.F}, {2.F, 4.F}})));
}

TEST(BeamSearch, WrongSizesAreNamed) {
  TableModel model(Scrambled, 1, 1);
  EXPECT_THAT([&] { BeamSearch(model, 1, 5, Options(0, 1.0)); },
              testing::ThrowsMessage<Error>("beam is 0: expected 1 or more"));
  EXPECT_THAT([&] { BeamSearch(model, 1, 0, Options(1, 1.0)); },
              testing::ThrowsMessage<Error>("max_length is 0: expected 1 or more"));
}

}  // namespace
}  // namespace regard::models
