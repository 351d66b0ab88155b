#include "data/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

template <class T>
TensorBytes Bytes(const std::string& dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), std::as_bytes(std::span(values))};
}

// What safetensors 0.8.0 for Python writes for these tensors and metadata (a header of 394 bytes, padded to
// 400).
std::string PythonFile() {
  return "\x90\x01\0\0\0\0\0\0"
         R"({"__metadata__":{"a":"é\"\\/","b":"xyz"},"a":{"dtype":"I64","shape":[3],"data_offsets":[0,24]},)"
         R"("z":{"dtype":"F64","shape":[0,4],"data_offsets":[24,24]},)"
         R"("b.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[24,48]},)"
         R"("h":{"dtype":"F16","shape":[3],"data_offsets":[48,54]},)"
         R"("é\"\n\u0001/<":{"dtype":"U8","shape":[5],"data_offsets":[54,59]},)"
         R"("c":{"dtype":"BOOL","shape":[],"data_offsets":[59,60]}})"
         "      "
         "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\x80?\0\0\0@\0\0@@\0\0\x80@\0\0\xa0@"
         "\0\0\0<\0@\0\1\2\3\4\1"s;
}

class Safetensors : public TestFolder {
 protected:
  std::string WriteAll(const std::string& name) const {
    const std::vector<float> b = {0, 1, 2, 3, 4, 5};
    const std::vector<std::int64_t> a = {0, 1, 2};
    const std::vector<std::uint16_t> h = {0, 0x3c00, 0x4000};
    const std::vector<std::uint8_t> u = {0, 1, 2, 3, 4}, c = {1};
    WriteSafetensors(Path(name),
                     {{"b.weight", Bytes("F32", {2, 3}, b)},
                      {"a", Bytes("I64", {3}, a)},
                      {"c", Bytes("BOOL", {}, c)},
                      {"z", Bytes("F64", {0, 4}, std::vector<double>{})},
                      {"h", Bytes("F16", {3}, h)},
                      {"é\"\n\x01/<", Bytes("U8", {5}, u)}},
                     {{"b", "xyz"}, {"a", "é\"\\/"}});
    return Path(name);
  }
};

TEST_F(Safetensors, WritesWhatThePythonPackageWrites) {
  WriteAll("a.safetensors");
  EXPECT_EQ(Read("a.safetensors"), PythonFile());
  WriteSafetensors(Path("b.safetensors"), {});
  EXPECT_EQ(Read("b.safetensors"), "\x08\0\0\0\0\0\0\0{}      "s);
}

TEST_F(Safetensors, ReadsWhatThePythonPackageWrites) {
  const SafetensorsFile file = SafetensorsFile::Read(Write("a.safetensors", PythonFile()));
  EXPECT_EQ(file.tensors().size(), 6u);
  EXPECT_EQ(file.metadata().at("a"), "é\"\\/");
  const TensorBytes& weight = file.at("b.weight");
  EXPECT_EQ(weight.dtype, "F32");
  EXPECT_THAT(weight.shape, ElementsAre(2, 3));
  std::vector<float> values(6);
  ASSERT_EQ(weight.bytes.size(), 24u);
  std::memcpy(values.data(), weight.bytes.data(), 24);
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(file.at("z").bytes.size(), 0u);
  EXPECT_THAT(file.at("c").shape, ElementsAre());
  EXPECT_EQ(ErrorOf([&] { file.at("d"); }), Path("a.safetensors") + ": there is no tensor \"d\"");
}

TEST_F(Safetensors, MovesWithItsBytes) {
  SafetensorsFile first = SafetensorsFile::Read(Write("a.safetensors", PythonFile()));
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(std::to_integer<int>(second.at("c").bytes[0]), 1);
}

// A file with this header and this many bytes of data.
std::string File(const std::string& header, std::size_t data) {
  std::string size(8, '\0');
  size[0] = static_cast<char>(header.size());
  return size + header + std::string(data, '\0');
}

TEST_F(Safetensors, BadFilesAreNamed) {
  const auto error = [&](const std::string& bytes) {
    return ErrorOf([&] { SafetensorsFile::Read(Write("a.safetensors", bytes)); });
  };
  EXPECT_THAT(ErrorOf([&] { SafetensorsFile::Read(Path("none")); }),
              HasSubstr("none: cannot be opened: No such file"));
  EXPECT_THAT(ErrorOf([&] { SafetensorsFile::Read(Path("")); }), HasSubstr("a folder; expected a file"));
  EXPECT_THAT(error(""), AllOf(HasSubstr("a.safetensors: cut short: 0 bytes")));
  EXPECT_THAT(error("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}"),
              HasSubstr("a header of 18446744073709551615 bytes"));
  EXPECT_THAT(error(PythonFile().substr(0, 460)),
              HasSubstr("tensor \"c\": its bytes 59 to 60 do not lie within"));
  EXPECT_THAT(error(PythonFile() + "x"), HasSubstr("61 bytes of data; its tensors have 60"));
  EXPECT_THAT(error(File("[1]", 0)), HasSubstr("the header is not a JSON object"));
  EXPECT_THAT(error(File("{\"a\":1}", 0)), HasSubstr("tensor \"a\": the header is not as expected"));
  const auto tensor = [&](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return error(File(
        "{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + offsets + "]}}",
        8));
  };
  EXPECT_EQ(tensor("F32", "2", "0,8"), "no error");
  EXPECT_THAT(tensor("F33", "2", "0,8"), HasSubstr("tensor \"a\": type \"F33\" is not one of"));
  EXPECT_THAT(tensor("F32", "3", "0,8"), HasSubstr("it has 8 bytes; expected 12 for F32 of shape [3]"));
  EXPECT_THAT(tensor("F32", "-1", "0,8"), HasSubstr("shape [-1] is not possible"));
  EXPECT_THAT(tensor("F32", "4294967296,4294967296,4294967296", "0,8"), HasSubstr("is not possible"));
  EXPECT_THAT(tensor("F32", "2", "8,0"), HasSubstr("its bytes 8 to 0 do not lie within"));
  EXPECT_THAT(tensor("F32", "2", "0"), HasSubstr("data_offsets are not two offsets"));
  EXPECT_THAT(tensor("F32", "1", "4,8"), HasSubstr("leave a gap at byte 0"));
  EXPECT_THAT(error(File(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                         R"("b":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}})",
                         5)),
              HasSubstr("tensors overlap at byte 2"));
}

TEST_F(Safetensors, BrokenFilesNeverCrash) {
  ReadBroken(PythonFile(), [&](const std::string& bytes) {
    const SafetensorsFile file = SafetensorsFile::Read(Write("a.safetensors", bytes));
    unsigned sum = 0;  // touch every byte that is handed out
    for (const auto& [name, tensor] : file.tensors()) {
      for (const std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);
    }
    EXPECT_LT(sum, 1u << 20);
  });
}

TEST_F(Safetensors, FailedWritesLeaveTheLastGoodFile) {
  WriteAll("a.safetensors");
  const std::vector<float> one = {1};
  EXPECT_THAT(ErrorOf([&] {
                WriteSafetensors(Path("a.safetensors"), {{"x", Bytes("F32", {2}, one)}});
              }),
              HasSubstr("tensor \"x\" has 4 bytes; expected 8"));
  EXPECT_EQ(Read("a.safetensors"), PythonFile());
  EXPECT_THAT(ErrorOf([&] { WriteSafetensors(Path("none/a"), {}); }),
              HasSubstr("none/a: cannot be written: No such"));
  std::filesystem::create_directory(Path("folder"));
  EXPECT_THAT(ErrorOf([&] { WriteSafetensors(Path("folder"), {}); }), HasSubstr("folder: cannot be renamed"));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) files += entry.is_regular_file();
  EXPECT_EQ(files, 1) << "a temporary file was left";
}

}  // namespace
}  // namespace regard::data
