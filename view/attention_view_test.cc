#include "view/attention_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "engine/base/error.h"
#include "view/color.h"

namespace regard::view {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(PanelsFromWeights, RankOneToFourGiveTheSameMatrix) {
  const std::vector<float> weights = {0.9F, 0.1F};
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{2}, {1, 2}, {1, 1, 2}, {1, 1, 1, 2}}) {
    const auto panels = PanelsFromWeights("pair", weights, shape, {"query"}, {"left", "right"});
    ASSERT_EQ(panels.size(), 1U);
    EXPECT_EQ(panels[0].title, "pair");
    EXPECT_THAT(panels[0].queries, ElementsAre("query"));
    EXPECT_THAT(panels[0].keys, ElementsAre("left", "right"));
    EXPECT_THAT(panels[0].weights, ElementsAre(0.9F, 0.1F));
  }
}

TEST(PanelsFromWeights, EveryMatrixIsOnePanelInOrder) {
  std::vector<float> weights(12);
  std::iota(weights.begin(), weights.end(), 0.0F);
  const auto panels = PanelsFromWeights("layer 4", weights, std::vector<std::int64_t>{2, 3, 1, 2}, {"q"}, {});
  ASSERT_EQ(panels.size(), 6U);
  EXPECT_EQ(panels[0].title, "layer 4 · batch 0, head 0");
  EXPECT_EQ(panels[4].title, "layer 4 · batch 1, head 1");
  EXPECT_THAT(panels[4].weights, ElementsAre(8.0F, 9.0F));
  EXPECT_THAT(panels[4].keys, ElementsAre("0", "1"));
}

TEST(PanelsFromWeights, LabelsThatDoNotFitAreAnErrorNamingBothCounts) {
  const std::vector<float> weights(77, 1.0F / 77);
  const std::vector<std::string> labels(78, "token");
  const auto call = [&] {
    PanelsFromWeights("", weights, std::vector<std::int64_t>{1, 77}, {"query"}, labels);
  };
  EXPECT_EQ(ErrorOf(call), "78 key labels for 77 key weights (weights of shape [1, 77])");
}

TEST(PanelsFromWeights, ShapesThatCannotBeAreAnError) {
  const std::vector<float> weights(4);
  const auto error = [&](std::vector<std::int64_t> shape) {
    return ErrorOf([&] { PanelsFromWeights("", weights, shape, {}, {}); });
  };
  EXPECT_THAT(error({1, 1, 1, 2, 2}), HasSubstr("expected 1 to 4 dimensions, found 5"));
  EXPECT_THAT(error({}), HasSubstr("found 0"));
  EXPECT_THAT(error({2, 3}), HasSubstr("[2, 3] need 6 numbers, found 4"));
  EXPECT_THAT(error({-1, -4}), HasSubstr("[-1, -4]"));
  EXPECT_THAT(error({std::int64_t{1} << 40, std::int64_t{1} << 40}), HasSubstr("no such shape"));
}

TEST(Validate, NamesThePanelAndBothCounts) {
  const AttentionDocument document{
      "d", "q", "k", {{"", {"a"}, {"b"}, {1}, {}}, {"second", {"a"}, {"b", "c"}, {1}, {}}}};
  EXPECT_EQ(ErrorOf([&] { Validate(document); }),
            "panel 2 of 2 (\"second\"): 1 query labels and 2 key labels for 1 weights, expected 2 weights");
}

TEST(Validate, RejectsAMaskOfAnotherSizeAndAnEmptyDocument) {
  EXPECT_THAT(ErrorOf([] {
                Validate({"d", "q", "k", {{"", {"a"}, {"b"}, {1}, {1, 0}}}});
              }),
              HasSubstr("a mask of 2 cells for 1 weights"));
  EXPECT_THAT(ErrorOf([] { Validate({"d", "q", "k", {}}); }), HasSubstr("no panel"));
}

TEST(SharedRange, SpansAllPanelsAndLeavesOutWhatIsMaskedOrNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const AttentionDocument document{"",
                                   "q",
                                   "k",
                                   {{"", {"a"}, {"x", "y", "z"}, {0.25F, nan, 9}, {0, 0, 1}},
                                    {"", {"a"}, {"x", "y"}, {0.75F, infinity}, {}}}};
  EXPECT_EQ(SharedRange(document).low, 0);
  EXPECT_EQ(SharedRange(document).high, 0.75F);
}

TEST(SharedRange, IsNeverEmpty) {
  const AttentionDocument zeros{"", "q", "k", {{"", {"a"}, {"x"}, {0}, {}}}};
  EXPECT_EQ(SharedRange(zeros).high, 1);
  const AttentionDocument masked{"", "q", "k", {{"", {"a"}, {"x"}, {5}, {1}}}};
  EXPECT_EQ(SharedRange(masked).high, 1);
  const AttentionDocument negative{"", "q", "k", {{"", {"a"}, {"x"}, {-3}, {}}}};
  EXPECT_EQ(SharedRange(negative).low, -3);
  EXPECT_GT(SharedRange(negative).high, -3);
}

TEST(Range, PlacesTheLargestFloatsWithoutOverflow) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_FLOAT_EQ((Range{-most, most}).Place(0), 0.5F);
}

TEST(RampColor, MeetsItsStopsAndIsBetweenThem) {
  const Rgb first = RampColor(kLightRamp, 0), last = RampColor(kLightRamp, 1);
  EXPECT_EQ(first.red << 16 | first.green << 8 | first.blue, 0xeff6f5);
  EXPECT_EQ(last.red << 16 | last.green << 8 | last.blue, 0x22233b);
  const Rgb between = RampColor(kLightRamp, 0.05F);
  EXPECT_EQ(between.red, (0xef + 0xb9) / 2);
  EXPECT_EQ(HexColor(0x0092c7), "#0092c7");
}

}  // namespace
}  // namespace regard::view
