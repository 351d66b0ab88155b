#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "view/attention_view.h"
#include "view/count_text.h"

namespace regard::view {
namespace {

using testing::HasSubstr;
using testing::Not;

// Every tag closed in order, every '&' an entity, no character that XML forbids.
testing::AssertionResult WellFormed(const std::string& xml) {
  const std::regex piece(R"(<(/?)([a-zA-Z]+)((?: [a-zA-Z:-]+="[^"<]*")*)(/?)>|[^<]+)");
  std::vector<std::string> open;
  std::size_t end = 0;
  for (std::sregex_iterator it(xml.begin(), xml.end(), piece), none; it != none; ++it) {
    if (static_cast<std::size_t>(it->position()) != end) break;
    end += static_cast<std::size_t>(it->length());
    if (!(*it)[2].matched) continue;
    if ((*it)[1].length() == 0) {
      if ((*it)[4].length() == 0) open.push_back((*it)[2]);
    } else if (open.empty() || open.back() != (*it)[2]) {
      return testing::AssertionFailure() << "</" << (*it)[2] << "> closes nothing";
    } else {
      open.pop_back();
    }
  }
  if (end != xml.size()) return testing::AssertionFailure() << "not XML: " << xml.substr(end, 60);
  if (!open.empty()) return testing::AssertionFailure() << "<" << open.back() << "> stays open";
  if (std::regex_search(xml, std::regex("&(?!amp;|lt;|gt;|quot;)"))) {
    return testing::AssertionFailure() << "a bare &";
  }
  for (const char letter : xml) {
    if (letter != '\n' && std::iscntrl(static_cast<unsigned char>(letter)) != 0) {
      return testing::AssertionFailure() << "character " << static_cast<int>(letter);
    }
  }
  return testing::AssertionSuccess();
}

TEST(SvgDocument, AGridKeepsItsColumns) {
  const std::array<std::int64_t, 4> shape = {2, 3, 1, 2};
  const std::vector<float> weights(12, 0.5F);
  const AttentionDocument grid =
      GridFromWeights("", weights, shape, {{"layer 1", "layer 2"}, {"a", "b", "c"}, {"q"}, {"x", "y"}});
  ASSERT_EQ(grid.panels.size(), 6U);
  EXPECT_EQ(grid.panels[4].title, "layer 2, b");
  const std::string svg = SvgDocument(grid);
  // The places of the panels: the fourth is below the first, the fifth below the second.
  const std::regex place("translate\\(([0-9.]+) ([0-9.]+)\\)\">\n<text x=\"0.0\" y=\"12.0\"");
  std::vector<std::pair<std::string, std::string>> places;
  for (std::sregex_iterator it(svg.begin(), svg.end(), place), none; it != none; ++it) {
    places.emplace_back((*it)[1], (*it)[2]);
  }
  ASSERT_EQ(places.size(), 6U);
  EXPECT_EQ(places[3].first, places[0].first);
  EXPECT_EQ(places[4].first, places[1].first);
  EXPECT_EQ(places[0].second, places[2].second);
  EXPECT_NE(places[3].second, places[2].second);
}

TEST(GridFromWeights, NamesAWrongNumberOfTitles) {
  const std::array<std::int64_t, 4> shape = {2, 1, 1, 1};
  const std::vector<float> weights(2, 1);
  try {
    (void)GridFromWeights("", weights, shape, {{"only one"}, {}, {}, {}});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("1 row labels for 2 row"));
  }
}

TEST(SvgDocument, IsWellFormedWhateverTheText) {
  const std::string hostile = "</text><script>alert('1')</script>&amp;\"]]>\x1b\x01\xFF\uFFFE";
  const std::string svg =
      SvgDocument({hostile, hostile, hostile, {{hostile, {hostile}, {hostile}, {1}, {}}}});
  EXPECT_TRUE(WellFormed(svg));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;/text&gt;&lt;script&gt;alert('1')&lt;/script&gt;&amp;amp;"));
}

TEST(SvgDocument, HasOneCellAWeightInTheSharedColors) {
  const AttentionDocument document{
      "t",
      "q",
      "k",
      {{"one", {"a"}, {"x", "y"}, {0, 0.5F}, {}}, {"two", {"a", "b", "c"}, {"x"}, {1, 0, 0}, {}}}};
  const std::string svg = SvgDocument(document);
  EXPECT_TRUE(WellFormed(svg));
  EXPECT_EQ(Count(svg, "class=\"cell\""), 5U);
  EXPECT_EQ(Count(svg, "rx=\"2\" fill=\"#eff6f5\""), 3U);
  EXPECT_EQ(Count(svg, "rx=\"2\" fill=\"#0092c7\""), 1U);  // half of the range of both
  EXPECT_EQ(Count(svg, "rx=\"2\" fill=\"#22233b\""), 1U);
  EXPECT_EQ(Count(svg, "url(#regard-ramp)"), 1U);
  EXPECT_THAT(svg, HasSubstr(">weight, one range for all<"));
}

TEST(SvgDocument, MaskedAndNotFiniteCellsAreOutsideTheColorRange) {
  const AttentionDocument document{
      "", "q", "k", {{"", {"a"}, {"x", "y", "z"}, {0.25F, NAN, 1e9F}, {0, 0, 1}}}};
  const std::string svg = SvgDocument(document);
  EXPECT_TRUE(WellFormed(svg));
  EXPECT_EQ(Count(svg, "class=\"cell\""), 1U);
  EXPECT_EQ(Count(svg, "class=\"nan\""), 1U);
  EXPECT_EQ(Count(svg, "class=\"masked\""), 1U);
  EXPECT_THAT(svg, HasSubstr(">0.25<"));
  EXPECT_THAT(svg, HasSubstr(">not a number<"));
}

TEST(SvgDocument, LabelsAreAsManyAsTheCells) {
  AttentionPanel panel{"", {}, {}, {}, {}};
  for (int i = 0; i < 60; ++i) panel.queries.push_back(std::string("q").append(std::to_string(i)));
  for (int i = 0; i < 70; ++i) panel.keys.push_back(std::string("k").append(std::to_string(i)));
  panel.weights.assign(panel.queries.size() * panel.keys.size(), 0.5F);
  const std::string svg = SvgDocument({"", "", "", {panel}});
  for (const std::string& label : panel.queries)
    EXPECT_EQ(Count(svg, std::string(">").append(label).append("<")), 1U);
  for (const std::string& label : panel.keys)
    EXPECT_EQ(Count(svg, std::string(">").append(label).append("<")), 1U);
}

}  // namespace
}  // namespace regard::view
