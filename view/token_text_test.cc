#include "view/token_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regard::view {
namespace {

TEST(ShownText, OrdinaryTextIsVerbatim) {
  for (const char* token : {"the", "▁the", "New York", "</s>", "naïve", "東京", "@@DATA@@",
                            "👩‍👩‍👧", "می‌خواهم"}) {
    EXPECT_EQ(ShownText(token), token);
    ASSERT_EQ(ShownToken(token).size(), 1U);
    EXPECT_FALSE(ShownToken(token)[0].symbol);
  }
}

TEST(ShownText, WhiteSpaceIsToldApart) {
  EXPECT_EQ(ShownText(" the"), "·the");
  EXPECT_EQ(ShownText("the  "), "the··");
  EXPECT_EQ(ShownText("  "), "··");
  EXPECT_EQ(ShownText("\n"), "↵");
  EXPECT_EQ(ShownText("\t"), "⇥");
  EXPECT_EQ(ShownText(""), "∅");
  EXPECT_EQ(ShownText("a\u00A0b"), "a<U+00A0>b");
}

TEST(ShownText, ControlAndInvisibleCharactersAreNamed) {
  EXPECT_EQ(ShownText("\x1B[31m"), "<U+001B>[31m");
  EXPECT_EQ(ShownText("a\u200B"), "a<U+200B>");
  EXPECT_EQ(ShownText("a\u202Eb"), "a<U+202E>b");
  EXPECT_EQ(ShownText("\u2028"), "<U+2028>");
  EXPECT_EQ(ShownText(std::string("a\0b", 3)), "a<U+0000>b");
  EXPECT_EQ(ShownText("\uFFFE"), "<U+FFFE>");
  EXPECT_EQ(ShownText("\u0301"), "◌\u0301");
}

TEST(ShownText, BytesThatAreNotUtf8AreNamedOneByOne) {
  EXPECT_EQ(ShownText("\xF0\x9F"), "<0xF0><0x9F>");
  EXPECT_EQ(ShownText("a\xFFz"), "a<0xFF>z");
  EXPECT_EQ(ValidUtf8("a\xFF\nz"), "a<0xFF>\nz");
}

TEST(ShownToken, SymbolsAreMarkedSoThatTheSameLettersInATokenDiffer) {
  const auto runs = ShownToken(" the");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_TRUE(runs[0].symbol);
  EXPECT_EQ(runs[1].text, "the");
  EXPECT_FALSE(runs[1].symbol);
  EXPECT_FALSE(ShownToken("∅")[0].symbol);
  EXPECT_TRUE(ShownToken("")[0].symbol);
}

TEST(DisplayWidth, CountsTerminalColumns) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("東京"), 4);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);
  EXPECT_EQ(DisplayWidth("👩‍👩‍👧"), 2);
  EXPECT_EQ(DisplayWidth(""), 0);
}

TEST(Shorten, CutsBetweenCharactersAndSaysSo) {
  EXPECT_EQ(Shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(Shorten("abcdef", 4), "abc…");
  EXPECT_EQ(Shorten("東京都", 4), "東…");
  EXPECT_EQ(Shorten("ae\u0301\u0301bcd", 3), "ae\u0301\u0301…");
}

}  // namespace
}  // namespace regard::view
