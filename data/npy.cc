#include "data/npy.h"

#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <cstring>
#include <limits>
#include <string_view>

#include "data/file.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie");

constexpr std::string_view kMagic = "\x93NUMPY";

template <class T>
constexpr std::string_view kDescr;
template <>
constexpr std::string_view kDescr<float> = "<f4";
template <>
constexpr std::string_view kDescr<double> = "<f8";
template <>
constexpr std::string_view kDescr<std::int64_t> = "<i8";

struct Header {
  std::string descr;
  bool fortran = false, has_fortran = false, has_shape = false;
  std::vector<std::int64_t> shape;
};

// Reads a header such as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }: the part of Python's
// literals that numpy writes.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  Header Parse() {
    Header header;
    Expect('{');
    while (!Take('}')) {
      const std::string key = Quoted();
      Expect(':');
      if (key == "descr") {
        header.descr = Quoted();
      } else if (key == "fortran_order") {
        header.fortran = Boolean();
        header.has_fortran = true;
      } else if (key == "shape") {
        header.shape = Tuple();
        header.has_shape = true;
      } else {
        Fail();
      }
      if (!Take(',')) {
        Expect('}');
        break;
      }
    }
    Space();
    if (!rest_.empty() || header.descr.empty() || !header.has_fortran || !header.has_shape) Fail();
    return header;
  }

 private:
  [[noreturn]] static void Fail() { throw Error("the header is not numpy's, or of a type with fields"); }
  void Space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }
  bool Take(char c) {
    Space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void Expect(char c) {
    if (!Take(c)) Fail();
  }
  bool TakeWord(std::string_view word) {
    Space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::string Quoted() {
    const char quote = Take('\'') ? '\'' : '"';
    if (quote == '"') Expect('"');
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) Fail();
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool Boolean() {
    if (TakeWord("True")) return true;
    if (!TakeWord("False")) Fail();
    return false;
  }
  std::vector<std::int64_t> Tuple() {
    std::vector<std::int64_t> values;
    Expect('(');
    while (!Take(')')) {
      values.push_back(Number());
      if (!Take(',')) {
        Expect(')');
        break;
      }
    }
    return values;
  }
  std::int64_t Number() {
    Space();
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      if (value > (std::numeric_limits<std::int64_t>::max() - 9) / 10) Fail();
      value = 10 * value + (rest_[digits] - '0');
    }
    if (digits == 0) Fail();
    rest_.remove_prefix(digits);
    return value;
  }

  std::string_view rest_;
};

// Number of elements; no more than 2^60, so that their bytes can be counted.
std::uint64_t Elements(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) throw Error(fmt::format("shape ({}) is not possible", fmt::join(shape, ", ")));
    empty = empty || size == 0;
  }
  if (empty) return 0;
  for (const std::int64_t size : shape) {
    if (count > (std::uint64_t{1} << 60) / static_cast<std::uint64_t>(size)) {
      throw Error(fmt::format("shape ({}) is not possible", fmt::join(shape, ", ")));
    }
    count *= static_cast<std::uint64_t>(size);
  }
  return count;
}

template <class T>
void ReadValues(std::string_view data, NpyArray& array) {
  const std::uint64_t count = Elements(array.shape);
  if (data.size() != count * sizeof(T)) {
    throw Error(fmt::format("{} bytes of values; expected {} for {} of shape ({})", data.size(),
                            count * sizeof(T), kDescr<T>, fmt::join(array.shape, ", ")));
  }
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), data.data(), data.size());
  array.values = std::move(values);
}

NpyArray ParseNpy(std::string_view bytes) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  if (bytes.size() < 10 || !bytes.starts_with(kMagic)) throw Error("not a .npy file, or cut short");
  const std::size_t major = byte(6);
  if (major != 1 && major != 2) throw Error(fmt::format(".npy version {}; expected 1 or 2", major));
  const std::size_t start = major == 1 ? 10 : 12;
  if (bytes.size() < start) throw Error("cut short in the header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (major == 2) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start) {
    throw Error(fmt::format("a header of {} bytes in a file of {}: cut short", length, bytes.size()));
  }
  const Header header = HeaderParser(bytes.substr(start, length)).Parse();
  const std::string_view data = bytes.substr(start + length);
  NpyArray array;
  array.shape = header.shape;
  if (header.fortran && header.shape.size() > 1) throw Error("values are in Fortran order; expected C order");
  if (header.descr == kDescr<float>) {
    ReadValues<float>(data, array);
  } else if (header.descr == kDescr<double>) {
    ReadValues<double>(data, array);
  } else if (header.descr == kDescr<std::int64_t>) {
    ReadValues<std::int64_t>(data, array);
  } else {
    throw Error(
        fmt::format("values of type {}; expected <f4, <f8 or <i8 (float32, float64, int64)", header.descr));
  }
  return array;
}

// Numpy leaves room for the first size to grow to 21 digits, then pads so that the values start at a multiple
// of 64.
std::string MakeHeader(std::string_view descr, const std::vector<std::int64_t>& shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  if (!shape.empty()) text.append(21 - fmt::format("{}", shape[0]).size(), ' ');
  const std::size_t start = text.size() + 1 + 10 > 65535 ? 12 : 10;
  text.append(63 - (start + text.size()) % 64, ' ');
  text += '\n';
  std::string header(kMagic);
  header += start == 10 ? '\1' : '\2';
  header += '\0';
  for (std::size_t i = 0; i < start - 8; ++i) header += static_cast<char>(text.size() >> (8 * i));
  return header + text;
}

}  // namespace

NpyArray ReadNpy(const std::string& path) {
  const std::string bytes = ReadFile(path);
  try {
    return ParseNpy(bytes);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

void WriteNpy(const std::string& path, const NpyArray& array) {
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if (Elements(array.shape) != values.size()) {
          throw Error(fmt::format("{}: {} values do not fit shape ({})", path, values.size(),
                                  fmt::join(array.shape, ", ")));
        }
        AtomicFile file(path);
        file.Write(MakeHeader(kDescr<T>, array.shape));
        file.Write({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
        file.Commit();
      },
      array.values);
}

}  // namespace regard::data
