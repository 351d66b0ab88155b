#include "view/image_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "view/count_text.h"
#include "view/png.h"

namespace regard::view {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// 4 x 6 pixels in 2 x 3 patches.
ImagePanel Panel() {
  ImagePanel panel;
  panel.title = "cat, 98 %";
  panel.rows = 4;
  panel.columns = 6;
  panel.pixels.assign(24, 0.5F);
  panel.patch = 2;
  return panel;
}

std::uint32_t NumberAt(const std::string& bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

TEST(Png, HoldsTheSizesAndThePixels) {
  const std::vector<float> pixels{0, 0.5F, 1, 2, -1, 0.2F};
  const std::string file = PngBytes(1, 2, 3, pixels);
  EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(NumberAt(file, 16), 2U);  // columns
  EXPECT_EQ(NumberAt(file, 20), 1U);
  EXPECT_EQ(file.substr(24, 2), "\x08\x02");  // 8 bits, RGB
  const std::size_t data = file.find("IDAT");
  std::string lines(7, '\0');
  uLongf size = lines.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(lines.data()), &size,
                       reinterpret_cast<const Bytef*>(file.data()) + data + 4, NumberAt(file, data - 4)),
            Z_OK);
  EXPECT_EQ(lines, std::string("\x00\x00\x80\xff\xff\x00\x33", 7));
}

TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64("\xff\xfe"), "//4=");
}

TEST(ImageSvg, WeightsAreAColourOverTheImageInOneRange) {
  ImagePanel first = Panel(), second = Panel();
  first.weights = {0.5F, 0.25F, 0, 0.25F, 0, 0};
  second.weights = {0, 0, 1, 0, 0, 0};
  const std::string svg = ImageSvg({"Looked", {first, second}});
  EXPECT_EQ(Count(svg, "<image"), 2U);
  EXPECT_EQ(Count(svg, "class=\"weight\""), 4U);
  EXPECT_EQ(Count(svg, "class=\"less\""), 8U);
  for (const char* text : {">Looked<", ">cat, 98 %<", "fill-opacity=\"0.288\"", "fill-opacity=\"0.72\"",
                           "even share, 16.7 %", ">100 %<"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_THAT(svg, Not(HasSubstr("class=\"glimpse\"")));
}

TEST(ImageSvg, GlimpsesAreOutlinedAndNumberedAndTheRestIsShaded) {
  ImagePanel panel = Panel();
  panel.glimpses = {4, 1};
  const std::string svg = ImageSvg({"", {panel}});
  EXPECT_EQ(Count(svg, "class=\"glimpse\""), 2U);
  const std::size_t unseen = svg.find("class=\"unseen\"");
  EXPECT_EQ(Count(svg.substr(unseen, svg.find("</g>", unseen) - unseen), "<rect"), 4U);
  // Patch 4 is the middle of the lower row: a width of 176 has three.
  EXPECT_THAT(svg, HasSubstr("<rect class=\"glimpse\" x=\"59.7\" y=\"59.7\""));
  EXPECT_LT(svg.find(">1</text>"), svg.find(">2</text>"));
}

TEST(ImageSvg, TextIsTextAndWhatWentWrongIsMarked) {
  ImagePanel panel = Panel();
  panel.title = "<b>&";
  panel.marked = true;
  const std::string svg = ImageSvg({"</svg>", {panel}});
  EXPECT_THAT(svg, HasSubstr("fill=\"#d6336c\">&lt;b&gt;&amp;<"));
  EXPECT_EQ(Count(svg, "</svg>"), 1U);
  EXPECT_THAT(ImagePage({"</title>", {panel}}), HasSubstr("<title>&lt;/title&gt;</title>"));
}

TEST(ImageSvg, SizesThatDoNotFitAreNamed) {
  const auto draw = [](auto change) {
    return [change] {
      ImagePanel panel = Panel();
      change(panel);
      ImageSvg({"", {Panel(), panel}});
    };
  };
  EXPECT_THAT(draw([](ImagePanel& p) { p.pixels.pop_back(); }),
              ThrowsMessage<Error>(HasSubstr("image 1: 23 values; expected 24")));
  EXPECT_THAT(draw([](ImagePanel& p) { p.weights = {1}; }),
              ThrowsMessage<Error>(HasSubstr("image 1: 1 weights; expected one for each of 6")));
  EXPECT_THAT(draw([](ImagePanel& p) { p.glimpses = {6}; }),
              ThrowsMessage<Error>(HasSubstr("expected 0 to 5")));
  EXPECT_THAT(draw([](ImagePanel& p) { p.patch = 4; }), ThrowsMessage<Error>(HasSubstr("do not tile")));
  EXPECT_THAT(draw([](ImagePanel& p) { p.channels = 2; }),
              ThrowsMessage<Error>(HasSubstr("1 or 3 channels")));
  EXPECT_THAT([] { ImageSvg({}); }, ThrowsMessage<Error>(HasSubstr("no image")));
}

}  // namespace
}  // namespace regard::view
