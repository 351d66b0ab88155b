#include "data/bleu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::HasSubstr;

TEST(SentenceBleu, PublishedValues) {
  EXPECT_NEAR(SentenceBleu("il est paresseux .", "il est calme .", 2), .658, .0005);
  EXPECT_NEAR(SentenceBleu("je suis en retard ?", "je suis chez moi .", 2), .447, .0005);
  EXPECT_NEAR(SentenceBleu("je perdu .", "j'ai perdu .", 2), .687, .0005);
  EXPECT_EQ(SentenceBleu("il court .", "il est calme .", 2), 0);
}

// Text cases 2, 3 and 4.
TEST(SentenceBleu, ShortAndEmpty) {
  EXPECT_NEAR(SentenceBleu(".", "il est calme .", 2), .050, .0005);
  EXPECT_EQ(SentenceBleu("yes", "no", 2), 0);
  EXPECT_EQ(SentenceBleu("", "il est calme .", 2), 0);
  EXPECT_EQ(SentenceBleu("", "", 2), 0);
  EXPECT_EQ(SentenceBleu("a b c", "", 2), 0);
  EXPECT_DOUBLE_EQ(SentenceBleu("a b c", "a b c", 9), 1);
  // Each n-gram of the reference counts once.
  EXPECT_DOUBLE_EQ(SentenceBleu("a a a a", "a b c d", 1), .5);
  EXPECT_THROW(SentenceBleu("a", "a", 0), UsageError);
}

TEST(CorpusBleu, PublishedValue) {
  const BleuScore score = CorpusBleu({"This is a test."}, {{"this is a Tezt."}}, {.lowercase = true});
  EXPECT_NEAR(score.score, 42.729, .0005);
  EXPECT_EQ(score.signature, "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:regard-" REGARD_VERSION);
  EXPECT_EQ(score.Line(),
            "BLEU = 42.73 80.0/50.0/33.3/25.0 (BP = 1.000 ratio = 1.000 hyp_len = 5 ref_len = 5)");
}

// Text case 3.
TEST(CorpusBleu, EmptyHypothesisKeepsItsLine) {
  const BleuScore all = CorpusBleu({"a b c d", ""}, {{"a b c d"}, {"e f g h"}});
  EXPECT_EQ(all.hypothesis_length, 4);
  EXPECT_EQ(all.reference_length, 8);
  EXPECT_NEAR(all.score, 100 * std::exp(-1.0), 1e-9);
  const BleuScore none = CorpusBleu({""}, {{"a"}});
  EXPECT_EQ(none.score, 0);
  EXPECT_EQ(none.brevity_penalty, 0);
  EXPECT_EQ(CorpusBleu({""}, {{""}}).score, 0);
}

TEST(CorpusBleu, ClosestReferenceLengthTheShorterOfTwo) {
  EXPECT_EQ(CorpusBleu({"a b c"}, {{"a b c d", "a b", "a b c d e f"}}).reference_length, 2);
  const BleuScore several = CorpusBleu({"a b", "a"}, {{"a b"}, {"a", "b"}});
  EXPECT_THAT(several.signature, HasSubstr("nrefs:var|"));
}

TEST(BleuTokenize, ByName) {
  EXPECT_EQ(BleuTokenize("Hello, world! 3.14 -- it's 1-2 &quot;x&quot;.", "13a"),
            "Hello , world ! 3.14 -- it's 1 - 2 \" x \" .");
  EXPECT_EQ(BleuTokenize("«Été», 3,5 €.", "intl"), "« Été » , 3,5 € .");
  EXPECT_EQ(BleuTokenize("né e", "char"), "n é e");
  EXPECT_EQ(BleuTokenize(" a,\xC2\xA0 b. ", "none"), "a, b.");
  EXPECT_THAT(ErrorOf([] { BleuTokenize("a", "zh"); }), HasSubstr("BLEU tokeniser \"zh\""));
}

TEST(CorpusBleu, WrongArgumentsAreNamed) {
  EXPECT_THAT(ErrorOf([] { CorpusBleu({"a"}, {}); }), HasSubstr("1 hypotheses and 0 lists of references"));
  EXPECT_THAT(ErrorOf([] { CorpusBleu({}, {}); }), HasSubstr("at least one"));
  EXPECT_THAT(ErrorOf([] { CorpusBleu({"a"}, {{}}); }), HasSubstr("hypothesis 1 has no reference"));
  EXPECT_THAT(ErrorOf([] { CorpusBleu({"a"}, {{"a"}}, {.smooth = "log"}); }), HasSubstr("smoothing \"log\""));
  EXPECT_THAT(ErrorOf([] { CorpusBleu({"a"}, {{"a"}}, {.max_order = 0}); }), HasSubstr("order 0"));
}

}  // namespace
}  // namespace regard::data
