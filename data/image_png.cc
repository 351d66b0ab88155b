#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <filesystem>

#include "data/file.h"
#include "data/image_readers.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

namespace fs = std::filesystem;

struct PngFile {
  std::string path, name, class_name;
};

// libpng's reader of whole images, freed whatever happens.
class Png {
 public:
  explicit Png(const std::string& path) : path_(path), bytes_(ReadFile(path)) {
    image_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&image_, bytes_.data(), bytes_.size()) == 0) Fail();
  }
  ~Png() { png_image_free(&image_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  std::int64_t rows() const { return image_.height; }
  std::int64_t columns() const { return image_.width; }
  bool color() const { return (image_.format & PNG_FORMAT_FLAG_COLOR) != 0; }

  // Bytes [rows, columns, channels], 1 or 3 of these.
  void Read(std::int64_t channels, std::vector<unsigned char>& bytes) {
    image_.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    bytes.resize(static_cast<std::size_t>(rows() * columns() * channels));
    const png_color black{0, 0, 0};
    if (png_image_finish_read(&image_, &black, bytes.data(), 0, nullptr) == 0) Fail();
  }

 private:
  [[noreturn]] void Fail() const {
    throw Error(fmt::format("{}: not a whole PNG image: {}", path_, image_.message));
  }

  std::string path_, bytes_;
  png_image image_{};
};

bool IsPng(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension == ".png";
}

std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    paths.push_back(it->path());
  if (error) throw Error(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The files of a folder of classes, or, unlabelled, also those in the folder itself.
std::vector<PngFile> FindFiles(const std::string& path, bool labelled) {
  if (!fs::is_directory(path)) {
    if (labelled) throw Error(fmt::format("{}: one image has no class; expected a folder of classes", path));
    return {{path, fs::path(path).filename().string(), ""}};
  }
  std::vector<PngFile> files;
  for (const fs::path& entry : Entries(path)) {
    const std::string name = entry.filename().string();
    if (!labelled && IsPng(entry)) files.push_back({entry.string(), name, ""});
    if (name.starts_with('.') || !fs::is_directory(entry)) continue;
    for (const fs::path& file : Entries(entry))
      if (IsPng(file)) files.push_back({file.string(), name + "/" + file.filename().string(), name});
  }
  if (files.empty()) {
    throw Error(fmt::format("{}: no PNG file; expected {}", path,
                            labelled ? "a folder for each class, with its PNG files" : "PNG files"));
  }
  return files;
}

void CheckSize(const Png& png, const PngFile& file, const PngFile& first, const ImageSet& images) {
  if (png.rows() == images.rows && png.columns() == images.columns) return;
  throw Error(fmt::format("{}: {} x {} pixels; expected {} x {} as {} has", file.path, png.rows(),
                          png.columns(), images.rows, images.columns, first.path));
}

}  // namespace

ImageSet ReadPngs(const std::string& path, const ImageOptions& options) {
  const std::vector<PngFile> files = FindFiles(path, options.labelled);
  // Sizes and kinds first: nothing is decoded, and no memory taken, before they are known to fit.
  ImageSet images;
  for (const PngFile& file : files) {
    const Png png(file.path);
    if (images.rows == 0) {
      images.rows = png.rows();
      images.columns = png.columns();
    }
    CheckSize(png, file, files.front(), images);
    if (png.color()) images.channels = 3;
  }
  const std::int64_t values = CheckedValues(path, static_cast<std::int64_t>(files.size()), images.rows,
                                            images.columns, images.channels, options);
  images.pixels.reserve(static_cast<std::size_t>(values));
  std::vector<unsigned char> bytes;
  std::vector<std::string> class_names;
  for (const PngFile& file : files) {
    Png png(file.path);
    CheckSize(png, file, files.front(), images);  // again: the file may have changed
    png.Read(images.channels, bytes);
    images.pixels.insert(images.pixels.end(), bytes.begin(), bytes.end());
    images.names.push_back(file.name);
    class_names.push_back(file.class_name);
  }
  if (options.labelled) AssignClasses(path, "image", class_names, options, images);
  return images;
}

}  // namespace regard::data
