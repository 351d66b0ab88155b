#include "data/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

// What numpy 2.4 writes: the header padded to 128 bytes, then the values.
std::string Numpy(const std::string& descr, const std::string& shape, const std::string& values) {
  std::string text =
      "\x93NUMPY\x01\0v\0{'descr': '"s + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  text.resize(127, ' ');
  return text + "\n" + values;
}

const std::string kFloats = Numpy("<f4", "(2, 3)", "\0\0\0\0\0\0\x80?\0\0\0@\0\0@@\0\0\x80@\0\0\xa0@"s);

class Npy : public TestFolder {};

TEST_F(Npy, WritesWhatNumpyWrites) {
  WriteNpy(Path("a.npy"), {{2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5}});
  EXPECT_EQ(Read("a.npy"), kFloats);
  WriteNpy(Path("a.npy"), {{}, std::vector<double>{1.5}});
  EXPECT_EQ(Read("a.npy"), Numpy("<f8", "()", "\0\0\0\0\0\0\xf8?"s));
  WriteNpy(Path("a.npy"), {{0}, std::vector<std::int64_t>{}});
  EXPECT_EQ(Read("a.npy"), Numpy("<i8", "(0,)", ""));
}

TEST_F(Npy, ReadsWhatNumpyWrites) {
  const NpyArray array = ReadNpy(Write("a.npy", kFloats));
  EXPECT_THAT(array.shape, ElementsAre(2, 3));
  EXPECT_THAT(std::get<std::vector<float>>(array.values), ElementsAre(0, 1, 2, 3, 4, 5));
  const NpyArray second = ReadNpy(
      Write("a.npy", "\x93NUMPY\x02\0t\0\0\0{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"s +
                         std::string(58, ' ') + "\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xf0?"s));
  EXPECT_THAT(std::get<std::vector<double>>(second.values), ElementsAre(0, 1));
  EXPECT_THAT(std::get<std::vector<std::int64_t>>(
                  ReadNpy(Write("a.npy", Numpy("<i8", "(1,)", "\xfe\xff\xff\xff\xff\xff\xff\xff"))).values),
              ElementsAre(-2));
}

TEST_F(Npy, LongShapesTakeVersion2AndComeBack) {
  NpyArray array{std::vector<std::int64_t>(30000, 1), std::vector<float>{7}};
  WriteNpy(Path("a.npy"), array);
  EXPECT_EQ(Read("a.npy")[6], 2);
  const NpyArray back = ReadNpy(Path("a.npy"));
  EXPECT_EQ(back.shape, array.shape);
  EXPECT_EQ(back.values, array.values);
}

TEST_F(Npy, BadFilesAreNamed) {
  const auto error = [&](const std::string& bytes) {
    return ErrorOf([&] { ReadNpy(Write("a.npy", bytes)); });
  };
  EXPECT_THAT(ErrorOf([&] { ReadNpy(Path("none.npy")); }), HasSubstr("none.npy: cannot be opened"));
  EXPECT_THAT(error("hello, world"), HasSubstr("a.npy: not a .npy file"));
  EXPECT_THAT(error(kFloats.substr(0, 50)),
              HasSubstr("a.npy: a header of 118 bytes in a file of 50: cut short"));
  EXPECT_THAT(error(kFloats.substr(0, 140)),
              HasSubstr("12 bytes of values; expected 24 for <f4 of shape (2, 3)"));
  EXPECT_THAT(error(kFloats + "x"), HasSubstr("25 bytes of values; expected 24"));
  EXPECT_THAT(error(Numpy(">f4", "(1,)", "abcd")), HasSubstr("type >f4; expected <f4, <f8 or <i8"));
  EXPECT_THAT(error(Numpy("<f4", "(99999999999, 99999999999)", "abcd")), HasSubstr("is not possible"));
  EXPECT_THAT(error(Numpy("<f4", "(99999999999999999999,)", "abcd")), HasSubstr("the header is not numpy's"));
  std::string fortran = kFloats;
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_THAT(error(fortran), HasSubstr("Fortran order"));
  std::string version = kFloats;
  version[6] = 9;
  EXPECT_THAT(error(version), HasSubstr("version 9; expected 1 or 2"));
  EXPECT_THAT(ErrorOf([&] {
                WriteNpy(Path("a.npy"), {{2}, std::vector<float>{1}});
              }),
              HasSubstr("1 values do not fit shape (2)"));
}

TEST_F(Npy, BrokenFilesNeverCrash) {
  ReadBroken(kFloats, [&](const std::string& bytes) { ReadNpy(Write("a.npy", bytes)); });
}

}  // namespace
}  // namespace regard::data
