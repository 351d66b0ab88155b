#include "view/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "engine/base/error.h"
#include "view/attention_view.h"
#include "view/count_text.h"

namespace regard::view {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PlotSvg, DrawsPointsLinesTicksAndNames) {
  const std::string svg =
      PlotSvg({.title = "Fit",
               .x_axis = "x",
               .y_axis = "y",
               .series = {{"data", {0, 1, 2}, {0, 1, 4}, true}, {"truth", {0, 2}, {0, 4}}}});
  EXPECT_EQ(Count(svg, "<circle"), 4U);  // one in the legend
  EXPECT_EQ(Count(svg, "stroke-width=\"2.2\""), 2U);
  for (const char* text : {">Fit<", ">data<", ">truth<", ">x<", ">y<", ">0.5<", ">2<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(PlotSvg, LogarithmicAxesPutEqualRatiosAtEqualDistances) {
  const std::string svg =
      PlotSvg({.log_x = true, .log_y = true, .series = {{"", {1, 10, 100, -1}, {1, 100, 1e4, 1}, false}}});
  const std::size_t at = svg.find("<path d=\"M", svg.find("font-size=\"11\""));
  double x[3], y[3];
  const std::size_t path = svg.rfind("<path d=\"M");
  ASSERT_NE(at, std::string::npos);
  ASSERT_EQ(std::sscanf(svg.c_str() + path, "<path d=\"M%lf,%lfL%lf,%lfL%lf,%lf\"", &x[0], &y[0], &x[1],
                        &y[1], &x[2], &y[2]),
            6);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.2);
  EXPECT_NEAR(y[1] - y[0], y[2] - y[1], 0.2);
  EXPECT_GT(x[1], x[0]);
  EXPECT_LT(y[1], y[0]);
}

TEST(PlotSvg, WhatIsNotFiniteBreaksTheLineAndHostileTextIsText) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string svg =
      PlotSvg({.title = "</text><script>", .series = {{"a & b", {0, 1, 2, 3}, {0, nan, 1, 2}}}});
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_EQ(Count(svg.substr(svg.rfind("<path d=")), "M"), 2U);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(PlotSvg, NamesWhatCannotBeDrawn) {
  EXPECT_THROW(PlotSvg({.series = {{"short", {1, 2}, {1}}}}), Error);
  EXPECT_THROW(PlotSvg({.log_x = true, .series = {{"below", {-1}, {1}}}}), Error);
  EXPECT_NO_THROW(PlotSvg({.series = {{"one point", {1}, {1}}}}));
}

TEST(Arrange, PutsPicturesBesideAndBelowEachOther) {
  const std::string plot = PlotSvg({.series = {{"", {0, 1}, {0, 1}}}});
  const std::string map = SvgDocument({"", "q", "k", {{"", {"a"}, {"b"}, {1}, {}}}});
  const std::string both = Arrange({plot, map});
  EXPECT_EQ(Count(both, "<svg "), 3U);
  EXPECT_THAT(both, HasSubstr("<svg x=\"560.0\" y=\"0.0\" xmlns="));
  EXPECT_THAT(Arrange({plot, map, plot}, 2), HasSubstr("<svg x=\"0.0\" y=\"360.0\" xmlns="));
  EXPECT_THROW(Arrange({"hello"}), Error);
}

}  // namespace
}  // namespace regard::view
