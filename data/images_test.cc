#include "data/images.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <numeric>

#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ImageOptions Unlabelled() {
  ImageOptions options;
  options.labelled = false;
  return options;
}

class ImageCsv : public TestFolder {
 protected:
  ImageSet ReadText(const std::string& text, const ImageOptions& options = {}) {
    return ReadImageCsv(Write("i.csv", text), options);
  }
  std::string ErrorOfText(const std::string& text, const ImageOptions& options = {}) {
    return ErrorOf([&] { ReadText(text, options); });
  }
};

TEST_F(ImageCsv, PixelsThenLabel) {
  const ImageSet images = ReadText("1,2,3,4,10\r\n5,.5,-7,8e0,9\n\n0,0,0,0,10");
  EXPECT_EQ(images.size(), 3);
  EXPECT_EQ(images.rows, 2);
  EXPECT_EQ(images.columns, 2);
  EXPECT_EQ(images.channels, 1);
  EXPECT_THAT(images.pixels, ElementsAre(1, 2, 3, 4, 5, .5f, -7, 8, 0, 0, 0, 0));
  EXPECT_EQ(images.white, 8);
  EXPECT_THAT(images.classes, ElementsAre("9", "10"));
  EXPECT_THAT(images.labels, ElementsAre(1, 0, 1));
  EXPECT_THAT(images.names, IsEmpty());
}

TEST_F(ImageCsv, HeaderAndColumnOfTheLabel) {
  const std::string text = "\xEF\xBB\xBFlabel, \"p0\",p1,p2,p3\n\"cat\",1,2,3,4\ndog , 5,6,7,8\n";
  EXPECT_THAT(ReadText(text).classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(ReadText(text).pixels, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  ImageOptions options;
  options.label = "p3";
  EXPECT_THAT(ErrorOfText(text, options), HasSubstr("line 2, field 1 is \"cat\"; expected a number"));
  options.label = "1";
  EXPECT_THAT(ReadText("7,1,2,3,4\n8,5,6,7,8\n", options).classes, ElementsAre("7", "8"));
  for (const char* label : {"6", "0", "colour"}) {
    options.label = label;
    EXPECT_THAT(ErrorOfText(text, options), HasSubstr(fmt::format("no column \"{}\" for the label", label)));
  }
}

TEST_F(ImageCsv, SizesAreASquareOrGiven) {
  ImageOptions options = Unlabelled();
  EXPECT_EQ(ReadText("1,2,3,4\n", options).rows, 2);
  EXPECT_THAT(ErrorOfText("1,2,3,4,5,6\n", options), HasSubstr("6 pixels a line do not make a square"));
  options.rows = 2;
  EXPECT_EQ(ReadText("1,2,3,4,5,6\n", options).columns, 3);
  options.columns = 2;
  EXPECT_THAT(ErrorOfText("1,2,3,4,5,6\n", options), HasSubstr("6 pixels a line do not make 2 x 2"));
  options.rows = std::int64_t{1} << 62;
  EXPECT_THAT(ErrorOfText("1,2,3,4,5,6\n", options), HasSubstr("6 pixels a line do not make"));
}

TEST_F(ImageCsv, BadLinesAreNamed) {
  EXPECT_THAT(ErrorOfText(""), HasSubstr("i.csv: empty; expected a line of numbers"));
  EXPECT_THAT(ErrorOfText("a,b\n"), HasSubstr("i.csv: empty"));
  EXPECT_THAT(ErrorOfText("1,2,3,4,0\n1,2,3,0\n"), HasSubstr("line 2 has 4 fields; expected 5"));
  EXPECT_THAT(ErrorOfText("1,2,3,4,0\n1,x,3,4,0\n"),
              HasSubstr("line 2, field 2 is \"x\"; expected a number"));
  EXPECT_THAT(ErrorOfText("1,2,,4,0\n"), HasSubstr("line 1, field 3 is \"\""));
  EXPECT_THAT(ErrorOfText("1,2,nan,4,0\n"), HasSubstr("field 3 is \"nan\""));
  EXPECT_THAT(ErrorOfText("1,2,1e99,4,0\n"), HasSubstr("field 3 is \"1e99\""));
  EXPECT_THAT(ErrorOfText("1,2,3,4,\n"), HasSubstr("line 1 has an empty label"));
  EXPECT_THAT(ErrorOfText("1,2,3,4,\xFF\n"), HasSubstr("line 1: not UTF-8 at byte 8"));
  EXPECT_THAT(ErrorOf([&] { ReadImages(Path("none.csv")); }), HasSubstr("none.csv: cannot be opened"));
  ImageOptions small;
  small.max_values = 7;
  EXPECT_THAT(ErrorOfText("1,2,3,4,0\n1,2,3,4,0\n", small), HasSubstr("expected at most 7 values together"));
}

TEST_F(ImageCsv, ClassesOfATrainedModelHold) {
  ImageOptions options;
  options.classes = {"dog", "cat", "cow"};
  const ImageSet images = ReadText("1,cat\n2,dog\n", options);
  EXPECT_EQ(images.classes, options.classes);
  EXPECT_THAT(images.labels, ElementsAre(1, 0));
  EXPECT_THAT(ErrorOfText("1,cat\n2,emu\n", options),
              HasSubstr("image 2 is of class \"emu\"; expected one of dog, cat, cow"));
}

TEST_F(ImageCsv, BrokenFilesNeverCrash) {
  ReadBroken(
      "label,a,b\n1,2.5,30\ncat,-4,5e1\n", [&](const std::string& bytes) { ReadText(bytes); }, 500);
}

TEST(ImageFiles, SharedDigits) {
  const std::string path = SharedFile("data/digits.csv");
  if (path.empty()) GTEST_SKIP() << kNoSharedData;
  const ImageSet images = ReadImages(path);
  EXPECT_EQ(images.size(), 1797);
  EXPECT_EQ(images.rows, 8);
  EXPECT_EQ(images.columns, 8);
  EXPECT_EQ(images.white, 16);
  EXPECT_THAT(images.classes, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"));
  EXPECT_EQ(images.labels.size(), 1797u);
  EXPECT_EQ(std::accumulate(images.labels.begin(), images.labels.end(), 0), 8070);
  const ImageSet two = SelectImages(images, {1796, 1});
  EXPECT_THAT(two.labels, ElementsAre(images.labels[1796], images.labels[1]));
  EXPECT_EQ(two.size(), 2);
  EXPECT_EQ(two.pixels[64 + 3], 12);
  EXPECT_THAT(ErrorOf([&] { SelectImages(images, {1797}); }), HasSubstr("image 1797; expected 0 to 1796"));
}

std::string Idx(const std::vector<std::uint32_t>& shape, const std::vector<int>& values, char type = 8) {
  std::string bytes = {0, 0, type, static_cast<char>(shape.size())};
  for (const std::uint32_t size : shape)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

class IdxFiles : public TestFolder {
 protected:
  std::string WriteGz(const std::string& name, const std::string& bytes) {
    gzFile file = gzopen(Path(name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return Path(name);
  }
  std::string ErrorOfBytes(const std::string& bytes) {
    return ErrorOf([&] { ReadIdx(Write("i", bytes), Unlabelled()); });
  }
};

TEST_F(IdxFiles, PlainOrCompressed) {
  const std::string images_bytes = Idx({3, 1, 2}, {0, 255, 1, 2, 3, 4}), labels_bytes = Idx({3}, {7, 0, 7});
  Write("a-images-idx3-ubyte", images_bytes);
  Write("a-labels-idx1-ubyte", labels_bytes);
  WriteGz("b-images-idx3-ubyte.gz", images_bytes);
  WriteGz("b-labels-idx1-ubyte.gz", labels_bytes);
  for (const char* name : {"a-images-idx3-ubyte", "b-images-idx3-ubyte.gz"}) {
    const ImageSet images = ReadImages(Path(name));
    EXPECT_EQ(images.size(), 3);
    EXPECT_EQ(images.rows, 1);
    EXPECT_EQ(images.columns, 2);
    EXPECT_EQ(images.white, 255);
    EXPECT_THAT(images.pixels, ElementsAre(0, 255, 1, 2, 3, 4));
    EXPECT_THAT(images.classes, ElementsAre("0", "7"));
    EXPECT_THAT(images.labels, ElementsAre(1, 0, 1));
  }
  EXPECT_THAT(ReadIdx(Path("a-images-idx3-ubyte"), Unlabelled()).labels, IsEmpty());
  ImageOptions options;
  options.label = Path("b-labels-idx1-ubyte.gz");
  EXPECT_EQ(ReadIdx(Write("c", Idx({3, 1, 1, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})), options).channels, 3);
}

TEST_F(IdxFiles, BadFilesAreNamed) {
  EXPECT_EQ(ErrorOfBytes(Idx({1, 1, 2}, {1, 2})), "no error");
  EXPECT_THAT(ErrorOfBytes(""), HasSubstr("i: cut short in the header"));
  EXPECT_THAT(ErrorOfBytes("what is this"), HasSubstr("i: not an IDX file"));
  EXPECT_THAT(ErrorOfBytes(Idx({1, 1, 2}, {1, 2}, 13)), HasSubstr("type 0x0D; expected 0x08"));
  EXPECT_THAT(ErrorOfBytes(Idx({1, 1, 2}, {1})), HasSubstr("i: cut short: 1 of 2 values"));
  EXPECT_THAT(ErrorOfBytes(Idx({1, 1, 2}, {1, 2, 3})), HasSubstr("longer than the 2 values of its sizes"));
  EXPECT_THAT(ErrorOfBytes(Idx({2}, {1, 2})), HasSubstr("1 sizes; expected 3"));
  EXPECT_THAT(ErrorOfBytes(Idx({0, 1, 2}, {})), HasSubstr("0 images of 1 x 2 pixels"));
  EXPECT_THAT(ErrorOfBytes(Idx({1, 1, 1, 2}, {1, 2})), HasSubstr("2 channels; expected 1 or 3"));
  EXPECT_THAT(ErrorOf([&] { ReadIdx(Path("none")); }), HasSubstr("none: cannot be opened"));
  EXPECT_THAT(ErrorOf([&] { ReadIdx(Path("i")); }), HasSubstr("i: "));
  Write("x-images-idx3-ubyte", Idx({2, 1, 1}, {1, 2}));
  EXPECT_THAT(ErrorOf([&] { ReadIdx(Path("x-images-idx3-ubyte")); }), HasSubstr("x-labels-idx1-ubyte"));
  Write("x-labels-idx1-ubyte", Idx({3}, {1, 2, 3}));
  EXPECT_THAT(ErrorOf([&] { ReadIdx(Path("x-images-idx3-ubyte")); }),
              HasSubstr("of shape (3); expected (2)"));
}

TEST_F(IdxFiles, ClaimedSizesTakeNoMemory) {
  EXPECT_THAT(ErrorOfBytes(Idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {1})), HasSubstr("expected at most"));
  // Within the limit, but not there: found without 256 MiB of anything.
  EXPECT_THAT(ErrorOfBytes(Idx({1 << 12, 1 << 8, 1 << 8}, {1})),
              HasSubstr("cut short: 1 of 268435456 values"));
}

TEST_F(IdxFiles, ACompressedFileCutShortSaysSo) {
  std::vector<int> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>((i * i) % 251);
  WriteGz("z", Idx({50, 10, 10}, values));
  const std::string whole = Read("z");
  EXPECT_EQ(ReadIdx(Path("z"), Unlabelled()).size(), 50);
  EXPECT_THAT(ErrorOfBytes(whole.substr(0, whole.size() / 2)), HasSubstr("cut short"));
  std::string changed = whole;
  changed[changed.size() - 5] = static_cast<char>(changed[changed.size() - 5] + 1);  // of the checksum
  EXPECT_THAT(ErrorOfBytes(changed), HasSubstr("incorrect data check"));
  ReadBroken(
      whole, [&](const std::string& bytes) { ReadIdx(Write("i", bytes), Unlabelled()); }, 500);
  ReadBroken(
      Idx({2, 1, 2}, {1, 2, 3, 4}),
      [&](const std::string& bytes) { ReadIdx(Write("i", bytes), Unlabelled()); }, 500);
}

class PngFolder : public TestFolder {
 protected:
  // values: the channels of the format, for each pixel.
  std::string WritePng(const std::string& name, int rows, int columns, std::uint32_t format,
                       const std::vector<unsigned char>& values) {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<std::uint32_t>(columns);
    image.height = static_cast<std::uint32_t>(rows);
    image.format = format;
    EXPECT_NE(png_image_write_to_file(&image, Path(name).c_str(), 0, values.data(), 0, nullptr), 0)
        << image.message;
    return Path(name);
  }
  void WriteTwoClasses() {
    WritePng("set/10/b.png", 1, 2, PNG_FORMAT_GRAY, {1, 2});
    WritePng("set/10/a.PNG", 1, 2, PNG_FORMAT_GRAY, {0, 255});
    WritePng("set/9/c.png", 1, 2, PNG_FORMAT_GRAY, {7, 8});
    Write("set/9/notes.txt", "not an image");
  }
};

TEST_F(PngFolder, AFolderForEachClass) {
  WriteTwoClasses();
  const ImageSet images = ReadImages(Path("set"));
  EXPECT_EQ(images.rows, 1);
  EXPECT_EQ(images.columns, 2);
  EXPECT_EQ(images.channels, 1);
  EXPECT_THAT(images.pixels, ElementsAre(0, 255, 1, 2, 7, 8));
  EXPECT_THAT(images.classes, ElementsAre("9", "10"));
  EXPECT_THAT(images.labels, ElementsAre(1, 1, 0));
  EXPECT_THAT(images.names, ElementsAre("10/a.PNG", "10/b.png", "9/c.png"));
  EXPECT_THAT(SelectImages(images, {2}).names, ElementsAre("9/c.png"));
}

TEST_F(PngFolder, UnlabelledFolderOrFile) {
  WriteTwoClasses();
  WritePng("set/alone.png", 1, 2, PNG_FORMAT_GRAY, {3, 4});
  const ImageSet images = ReadImages(Path("set"), Unlabelled());
  EXPECT_THAT(images.names, ElementsAre("10/a.PNG", "10/b.png", "9/c.png", "alone.png"));
  EXPECT_THAT(images.labels, IsEmpty());
  const ImageSet one = ReadImages(Path("set/alone.png"), Unlabelled());
  EXPECT_THAT(one.pixels, ElementsAre(3, 4));
  EXPECT_THAT(one.names, ElementsAre("alone.png"));
  EXPECT_THAT(ErrorOf([&] { ReadImages(Path("set/alone.png")); }), HasSubstr("one image has no class"));
}

TEST_F(PngFolder, OneImageInColourMakesAllOfIt) {
  WritePng("set/x/a.png", 1, 2, PNG_FORMAT_GRAY, {5, 6});
  WritePng("set/x/b.png", 1, 2, PNG_FORMAT_RGB, {1, 2, 3, 4, 5, 6});
  const ImageSet images = ReadImages(Path("set"));
  EXPECT_EQ(images.channels, 3);
  EXPECT_THAT(images.pixels, ElementsAre(5, 5, 5, 6, 6, 6, 1, 2, 3, 4, 5, 6));
}

TEST_F(PngFolder, TransparentIsLaidOverBlackAndSixteenBitsReduced) {
  WritePng("a.png", 1, 2, PNG_FORMAT_RGBA, {200, 100, 50, 0, 200, 100, 50, 255});
  EXPECT_THAT(ReadImages(Path("a.png"), Unlabelled()).pixels, ElementsAre(0, 0, 0, 200, 100, 50));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = 2;
  image.height = 1;
  image.format = PNG_FORMAT_LINEAR_Y;
  const std::uint16_t values[] = {0, 65535};
  ASSERT_NE(png_image_write_to_file(&image, Path("b.png").c_str(), 0, values, 0, nullptr), 0);
  EXPECT_THAT(ReadImages(Path("b.png"), Unlabelled()).pixels, ElementsAre(0, 255));
}

TEST_F(PngFolder, BadFilesAreNamed) {
  WriteTwoClasses();
  WritePng("set/9/d.png", 2, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4});
  EXPECT_THAT(ErrorOf([&] { ReadImages(Path("set")); }),
              AllOf(HasSubstr("9/d.png: 2 x 2 pixels; expected 1 x 2"), HasSubstr("10/a.PNG")));
  Write("set/9/d.png", "PNG?");
  EXPECT_THAT(ErrorOf([&] { ReadImages(Path("set")); }), HasSubstr("9/d.png: not a whole PNG image"));
  std::filesystem::create_directory(Path("empty"));
  EXPECT_THAT(ErrorOf([&] { ReadImages(Path("empty")); }),
              HasSubstr("empty: no PNG file; expected a folder for"));
  EXPECT_THAT(ErrorOf([&] { ReadImages(Path("none.png"), Unlabelled()); }), HasSubstr("none.png: cannot be"));
}

TEST_F(PngFolder, ClaimedSizesTakeNoMemory) {
  const std::string path = WritePng("a.png", 2, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4});
  std::string bytes = Read("a.png");
  // Width and height of the first chunk, and its checksum.
  for (const std::size_t at : {16u, 20u}) bytes.replace(at, 4, std::string("\x00\x0F\x00\x00", 4));
  const unsigned long sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + 12, 17);
  for (std::size_t i = 0; i < 4; ++i) bytes[29 + i] = static_cast<char>(sum >> (24 - 8 * i));
  EXPECT_THAT(ErrorOf([&] { ReadImages(Write("b.png", bytes), Unlabelled()); }),
              HasSubstr("1 images of 983040 x 983040 pixels, 1 values each; expected at most"));
}

TEST_F(PngFolder, BrokenFilesNeverCrash) {
  std::vector<unsigned char> values(300);
  std::iota(values.begin(), values.end(), 0);
  WritePng("a.png", 10, 10, PNG_FORMAT_RGB, values);
  const std::string whole = Read("a.png");
  ReadBroken(
      whole, [&](const std::string& bytes) { ReadImages(Write("b.png", bytes), Unlabelled()); }, 1000);
  EXPECT_THAT(ErrorOf([&] { ReadImages(Write("b.png", whole.substr(0, whole.size() - 30)), Unlabelled()); }),
              HasSubstr("b.png: not a whole PNG image"));
}

}  // namespace
}  // namespace regard::data
