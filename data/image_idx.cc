#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "data/image_readers.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

namespace fs = std::filesystem;

// A file of bytes with a shape: two bytes of 0, 0x08 (bytes), the number of sizes, the sizes as big-endian
// 32-bit numbers, the values. Compressed files are read as if they were not.
class IdxFile {
 public:
  explicit IdxFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb"), &gzclose) {
    if (file_ == nullptr) throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    const auto start = Read<4>();
    if (start[0] != 0 || start[1] != 0 || start[3] < 1 || start[3] > 4)
      throw Error(
          fmt::format("{}: not an IDX file; expected bytes 0, 0, a type and a number of sizes", path));
    if (start[2] != 0x08) {
      throw Error(
          fmt::format("{}: IDX values of type 0x{:02X}; expected 0x08 (unsigned bytes)", path, start[2]));
    }
    for (int i = 0; i < start[3]; ++i) {
      const auto b = Read<4>();
      shape_.push_back(std::int64_t{b[0]} << 24 | std::int64_t{b[1]} << 16 | std::int64_t{b[2]} << 8 | b[3]);
    }
  }

  const std::vector<std::int64_t>& shape() const { return shape_; }

  // Calls take(bytes, count) until `count` values are read; no memory is taken for what the file only claims
  // to have. Throws regard::Error when there are fewer or more.
  template <class Take>
  void Values(std::int64_t count, Take take) {
    std::vector<unsigned char> block(1 << 16);
    for (std::int64_t done = 0; done < count;) {
      const auto wanted = static_cast<unsigned>(std::min<std::int64_t>(count - done, 1 << 16));
      const int got = gzread(file_.get(), block.data(), wanted);
      if (got <= 0) Fail(fmt::format("cut short: {} of {} values", done, count));
      take(block.data(), static_cast<std::size_t>(got));
      done += got;
    }
    if (gzread(file_.get(), block.data(), 1) != 0)
      Fail(fmt::format("longer than the {} values of its sizes", count));
  }

 private:
  template <std::size_t n>
  std::array<unsigned char, n> Read() {
    std::array<unsigned char, n> bytes{};
    if (gzread(file_.get(), bytes.data(), n) != static_cast<int>(n)) Fail("cut short in the header");
    return bytes;
  }
  // What zlib says comes first: it is the reason.
  [[noreturn]] void Fail(const std::string& what) const {
    int code = Z_OK;
    const char* reason = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) reason = std::strerror(errno);
    throw Error(fmt::format("{}: {}{}", path_, what, code < 0 ? fmt::format(" ({})", reason) : ""));
  }

  std::string path_;
  std::unique_ptr<gzFile_s, decltype(&gzclose)> file_;
  std::vector<std::int64_t> shape_;
};

// train-images-idx3-ubyte.gz -> train-labels-idx1-ubyte, compressed or not.
std::string LabelsOf(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  const auto replace = [&name](std::string_view from, std::string_view to) {
    const std::size_t at = name.rfind(from);
    if (at != name.npos) name.replace(at, from.size(), to);
    return at != name.npos;
  };
  const bool known = replace("images", "labels");
  replace("idx3", "idx1") || replace("idx4", "idx1");
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  const std::string labels = (fs::path(path).parent_path() / name).string();
  for (const std::string& candidate : {labels, labels + ".gz"})
    if (known && fs::exists(candidate)) return candidate;
  throw Error(fmt::format("{}: the file of its labels is missing{}; expected its name", path,
                          known ? " (" + labels + ", .gz or not)" : ""));
}

}  // namespace

ImageSet ReadIdx(const std::string& path, const ImageOptions& options) {
  IdxFile file(path);
  const std::vector<std::int64_t>& shape = file.shape();
  if (shape.size() < 3) {
    throw Error(fmt::format("{}: {} sizes; expected 3 (images, rows, columns) or 4 (and channels)", path,
                            shape.size()));
  }
  ImageSet images;
  images.rows = shape[1];
  images.columns = shape[2];
  images.channels = shape.size() == 4 ? shape[3] : 1;
  if (images.channels != 1 && images.channels != 3)
    throw Error(fmt::format("{}: {} channels; expected 1 or 3", path, images.channels));
  const std::int64_t values =
      CheckedValues(path, shape[0], images.rows, images.columns, images.channels, options);
  file.Values(values, [&images](const unsigned char* bytes, std::size_t count) {
    images.pixels.insert(images.pixels.end(), bytes, bytes + count);
  });
  if (!options.labelled) return images;

  const std::string labels_path = options.label.empty() ? LabelsOf(path) : options.label;
  IdxFile labels(labels_path);
  if (labels.shape().size() != 1 || labels.shape()[0] != shape[0]) {
    throw Error(fmt::format("{}: of shape ({}); expected ({}) as {} has images", labels_path,
                            fmt::join(labels.shape(), ", "), shape[0], path));
  }
  std::vector<std::string> names;
  labels.Values(shape[0], [&names](const unsigned char* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("{}", bytes[i]));
  });
  AssignClasses(labels_path, "image", names, options, images);
  return images;
}

}  // namespace regard::data
