#include "data/rouge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/porter.h"
#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ExpectScore(const RougeScore& score, double precision, double recall, double f) {
  EXPECT_NEAR(score.precision, precision, 1e-12);
  EXPECT_NEAR(score.recall, recall, 1e-12);
  EXPECT_NEAR(score.f, f, 1e-12);
}

TEST(Rouge, PublishedExample) {
  // The one in the rouge-score package's own description.
  const std::string reference = "The quick brown fox jumps over the lazy dog";
  const Rouge rouge = TextRouge("The quick brown dog jumps on the log.", {reference}, {.stem = true});
  ExpectScore(rouge.rouge1, 6. / 8, 6. / 9, 12. / 17);
  ExpectScore(rouge.rouge2, 2. / 7, 2. / 8, 4. / 15);
  ExpectScore(rouge.rougel, 5. / 8, 5. / 9, 10. / 17);
}

TEST(Rouge, TokensAreLowerCaseLettersAndDigits) {
  EXPECT_THAT(RougeTokens("X86_64's ÉTÉ, naïve\u2028\u0130t"),
              ElementsAre("x86", "64", "s", "t", "na", "ve", "i", "t"));
  EXPECT_THAT(RougeTokens("  \t"), ElementsAre());
  EXPECT_THAT(RougeTokens("Skies were always happy ones", {.stem = true}),
              ElementsAre("sky", "were", "alway", "happi", "one"));
}

TEST(Rouge, EmptySidesHaveNothing) {
  for (const auto& [hypothesis, reference] :
       std::vector<std::pair<std::string, std::string>>{{"", "a"}, {"a", ""}, {"", ""}, {"...", "..."}}) {
    const Rouge rouge = TextRouge(hypothesis, {reference});
    for (const RougeScore& score : {rouge.rouge1, rouge.rouge2, rouge.rougel}) ExpectScore(score, 0, 0, 0);
  }
  ExpectScore(TextRouge("yes", {"no"}).rouge1, 0, 0, 0);
  ExpectScore(TextRouge("yes", {"yes"}).rougel, 1, 1, 1);
  ExpectScore(TextRouge("yes", {"yes"}).rouge2, 0, 0, 0);
}

TEST(Rouge, EachNgramOfTheReferenceCountsOnce) {
  ExpectScore(TextRouge("a a a a", {"a b c d"}).rouge1, .25, .25, .25);
  ExpectScore(TextRouge("a a a a", {"a b c d"}).rougel, .25, .25, .25);
}

TEST(Rouge, BestReferenceOfEachKind) {
  const Rouge rouge = TextRouge("a b c d", {"d c b a", "a b x y"});
  ExpectScore(rouge.rouge1, 1, 1, 1);
  ExpectScore(rouge.rouge2, 1. / 3, 1. / 3, 1. / 3);
  ExpectScore(rouge.rougel, .5, .5, .5);
}

TEST(Rouge, AnEmptyHypothesisKeepsItsLine) {
  const Rouge mean = CorpusRouge({"a b", ""}, {{"a b"}, {"a b"}});
  ExpectScore(mean.rouge1, .5, .5, .5);
  ExpectScore(mean.rouge2, .5, .5, .5);
}

TEST(Rouge, WrongArgumentsAreNamed) {
  EXPECT_THAT(ErrorOf([] { CorpusRouge({"a"}, {}); }), HasSubstr("1 hypotheses and 0 lists of references"));
  EXPECT_THAT(ErrorOf([] { CorpusRouge({}, {}); }), HasSubstr("at least one"));
  EXPECT_THAT(ErrorOf([] { CorpusRouge({"a"}, {{}}); }), HasSubstr("without a reference"));
}

TEST(PorterStemmer, ThePapersExamples) {
  for (const auto& [word, stem] : std::vector<std::pair<std::string, std::string>>{
           {"caresses", "caress"},   {"ponies", "poni"},       {"cats", "cat"},
           {"feed", "feed"},         {"plastered", "plaster"}, {"motoring", "motor"},
           {"sing", "sing"},         {"hopping", "hop"},       {"falling", "fall"},
           {"hissing", "hiss"},      {"filing", "file"},       {"happy", "happi"},
           {"relational", "relat"},  {"rational", "ration"},   {"hopefulness", "hope"},
           {"electrical", "electr"}, {"adoption", "adopt"},    {"onion", "onion"},
           {"probate", "probat"},    {"rate", "rate"},         {"cease", "ceas"},
           {"controll", "control"},  {"roll", "roll"},         {"is", "is"}}) {
    EXPECT_EQ(PorterStem(word), stem) << word;
  }
}

TEST(PorterStemmer, ExtensionsOfTheReferencePackage) {
  for (const auto& [word, stem] : std::vector<std::pair<std::string, std::string>>{{"skies", "sky"},
                                                                                   {"dying", "die"},
                                                                                   {"dies", "die"},
                                                                                   {"died", "die"},
                                                                                   {"enjoy", "enjoy"},
                                                                                   {"spy", "spi"},
                                                                                   {"additionally", "addit"},
                                                                                   {"geology", "geolog"},
                                                                                   {"aged", "age"}}) {
    EXPECT_EQ(PorterStem(word), stem) << word;
  }
}

}  // namespace
}  // namespace regard::data
