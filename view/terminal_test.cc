#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "view/attention_view.h"
#include "view/token_text.h"

namespace regard::view {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string WithoutColors(const std::string& text) {
  return std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), "");
}

// L rows looking at key 2 i, over S keys.
AttentionDocument Diagonal(std::size_t rows, std::size_t columns) {
  AttentionPanel panel;
  for (std::size_t i = 0; i < rows; ++i)
    panel.queries.push_back(std::string("row").append(std::to_string(i)));
  for (std::size_t j = 0; j < columns; ++j) panel.keys.push_back(std::string("k").append(std::to_string(j)));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) panel.weights.push_back(j == 2 * i ? 0.875F : 0.0F);
  }
  return {"title", "query", "key", {panel}};
}

TEST(TerminalText, DrawsShadesLabelsAndEachRowsLargestWeight) {
  const AttentionDocument document{
      "pair", "query", "key", {{"head 0", {"ab", "東"}, {"x", "yz"}, {1, 0, 0.25F, 0.5F}, {}}}};
  EXPECT_EQ(TerminalText(document, 80, TerminalColor::kNone),
            "pair\n"
            "rows: query, columns: key\n"
            "\n"
            "head 0\n"
            "     y\n"
            "   x z\n"
            "ab @@   1.000 x\n"
            "東 ::++ 0.500 yz\n"
            "\n"
            "0.000   ..::--==++**##%%@@ 1.000\n");
}

TEST(TerminalText, NeverWiderThanAskedAndEveryRowSaysItsLargestOnce) {
  for (const int width : {40, 60, 80, 200}) {
    for (const TerminalColor color : {TerminalColor::kNone, TerminalColor::k256, TerminalColor::kTrueColor}) {
      const std::string text = WithoutColors(TerminalText(Diagonal(20, 50), width, color));
      int largest = 0;
      for (const std::string& line : Lines(text)) {
        EXPECT_LE(DisplayWidth(line), width) << line;
        if (line.find(" 0.875 k") != std::string::npos) ++largest;
      }
      EXPECT_EQ(largest, 20) << text;
    }
  }
}

TEST(TerminalText, WideCharactersKeepTheCellsInLine) {
  AttentionDocument document = Diagonal(2, 3);
  document.panels[0].queries = {"東京都", "a"};
  document.panels[0].keys = {"東", "e\u0301", "京"};
  const std::vector<std::string> lines = Lines(TerminalText(document, 80, TerminalColor::kNone));
  EXPECT_EQ(lines[3], "       東e\u0301 京");
  EXPECT_EQ(lines[4], "東京都 @@     0.875 東");
  EXPECT_EQ(lines[5], "     a     @@ 0.875 京");
}

TEST(TerminalText, ControlCharactersNeverReachTheTerminal) {
  AttentionDocument document = Diagonal(1, 1);
  const std::string hostile = "\x1b]0;owned\x07\x1b[31m\r\n\t\x9b";
  document.title = document.query_axis = document.key_axis = document.panels[0].title = hostile;
  document.panels[0].queries[0] = document.panels[0].keys[0] = hostile;
  const std::string text = TerminalText(document, 200, TerminalColor::kNone);
  for (const char letter : text) {
    EXPECT_TRUE(letter == '\n' || static_cast<unsigned char>(letter) >= 0x20) << static_cast<int>(letter);
  }
  EXPECT_THAT(text, HasSubstr("<U+001B>]0;owned<U+0007><U+001B>[31m<U+000D>↵⇥<0x9B>"));
  EXPECT_EQ(Lines(text)[0].find('\x1b'), std::string::npos);
}

TEST(TerminalText, MaskedAndNotFiniteCellsHaveTheirOwnMarks) {
  const AttentionDocument document{
      "", "q", "k", {{"", {"a", "b"}, {"x", "y"}, {0.5F, 9, NAN, INFINITY}, {0, 1, 0, 0}}}};
  const std::string text = TerminalText(document, 80, TerminalColor::kNone);
  EXPECT_THAT(text, HasSubstr("a @@~~ 0.500 x\n"));
  EXPECT_THAT(text, HasSubstr("b ????\n"));
  EXPECT_THAT(text, HasSubstr("~~ masked   ?? not a number\n"));
  EXPECT_THAT(TerminalText(Diagonal(1, 1), 80, TerminalColor::kNone), Not(HasSubstr("masked")));
}

TEST(TerminalText, ColorsAreOfTheRampAndAreReset) {
  const AttentionDocument document = Diagonal(1, 1);
  EXPECT_THAT(TerminalText(document, 80, TerminalColor::kTrueColor),
              HasSubstr("row0 \x1b[48;2;218;243;222m  \x1b[0m 0.875 k0\n"));
  // Level 4, 5, 4 of the cube: d7 ff d7
  EXPECT_THAT(TerminalText(document, 80, TerminalColor::k256), HasSubstr("row0 \x1b[48;5;194m  \x1b[0m"));
  EXPECT_THAT(TerminalText(document, 80, TerminalColor::kNone), Not(HasSubstr("\x1b")));
}

TEST(TerminalText, AMatrixWithoutRowsIsSaidToBeEmpty) {
  EXPECT_THAT(TerminalText(Diagonal(0, 3), 80, TerminalColor::kNone), HasSubstr("no weights: 0 by 3\n"));
}

TEST(DetectTerminalColor, IsNoneWhereOutputIsNoTerminal) {
  // ctest reads the output through a pipe.
  EXPECT_EQ(DetectTerminalColor(), TerminalColor::kNone);
}

}  // namespace
}  // namespace regard::view
