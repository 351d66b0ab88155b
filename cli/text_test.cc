#include "cli/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regard::cli {
namespace {

using ::testing::ElementsAre;

TEST(Nearest, FindsMisspeltWords) {
  const std::vector<std::string> verbs{"quickstart", "train", "translate", "evaluate", "view", "info"};
  EXPECT_EQ(Nearest("trian", verbs), "train");
  EXPECT_EQ(Nearest("tranlate", verbs), "translate");
  EXPECT_EQ(Nearest("eval", verbs), "evaluate");
  EXPECT_EQ(Nearest("quikstart", verbs), "quickstart");
}

TEST(Nearest, FindsNothingForAnotherWord) {
  EXPECT_EQ(Nearest("bake", {"train", "translate"}), "");
  EXPECT_EQ(Nearest("", {"train"}), "");
}

TEST(Wrap, BreaksAtSpacesAndKeepsLineEnds) {
  EXPECT_THAT(Wrap("one two three\n\nfour", 8), ElementsAre("one two", "three", "", "four"));
  EXPECT_THAT(Wrap("", 8), ElementsAre(""));
}

TEST(Wrap, KeepsAWordThatIsTooLong) {
  EXPECT_THAT(Wrap("a incomprehensible b", 5), ElementsAre("a", "incomprehensible", "b"));
}

TEST(Columns, CountsWhatATerminalShows) {
  EXPECT_EQ(Columns("août"), 4u);
  EXPECT_EQ(Columns("e\xCC\x81"), 1u);     // e and a combining accent
  EXPECT_EQ(Columns("\xE6\x97\xA5"), 2u);  // a wide character
  EXPECT_EQ(Columns("a\xFF"), 2u);         // a byte that is not UTF-8
  EXPECT_EQ(Pad("\xC3\xA9t\xC3\xA9", 5), "\xC3\xA9t\xC3\xA9  ");
}

TEST(Grouped, SeparatesThousands) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(-1234567), "-1,234,567");
}

TEST(Count, UsesThePluralExceptForOne) {
  EXPECT_EQ(Count(1, "pair"), "1 pair");
  EXPECT_EQ(Count(0, "pair"), "0 pairs");
  EXPECT_EQ(Count(2000, "pair"), "2,000 pairs");
}

TEST(Listed, JoinsWithTheLastWord) {
  EXPECT_EQ(Listed({"a"}), "a");
  EXPECT_EQ(Listed({"a", "b"}), "a or b");
  EXPECT_EQ(Listed({"a", "b", "c"}, "and"), "a, b and c");
}

TEST(Duration, UsesTheUnitThatFits) {
  EXPECT_EQ(Duration(0.44), "0.4 s");
  EXPECT_EQ(Duration(59.4), "59 s");
  EXPECT_EQ(Duration(200), "3 min 20 s");
  EXPECT_EQ(Duration(3900), "1 h 5 min");
}

}  // namespace
}  // namespace regard::cli
