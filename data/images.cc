#include "data/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "data/image_readers.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

namespace fs = std::filesystem;

bool IsWholeNumber(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// 2 before 10; names of other kinds in byte order.
std::vector<std::string> SortedClasses(const std::vector<std::string>& names) {
  const std::set<std::string> distinct(names.begin(), names.end());
  std::vector<std::string> classes(distinct.begin(), distinct.end());
  if (std::all_of(classes.begin(), classes.end(), IsWholeNumber)) {
    const auto smaller = [](const std::string& a, const std::string& b) { return a.size() < b.size(); };
    std::stable_sort(classes.begin(), classes.end(), smaller);
  }
  return classes;
}

}  // namespace

std::int64_t CheckedValues(const std::string& path, std::int64_t count, std::int64_t rows,
                           std::int64_t columns, std::int64_t channels, const ImageOptions& options) {
  if (count < 1 || rows < 1 || columns < 1) {
    throw Error(fmt::format("{}: {} images of {} x {} pixels; expected at least one of 1 x 1", path, count,
                            rows, columns));
  }
  std::int64_t values = 1;
  for (const std::int64_t size : {count, rows, columns, channels}) {
    if (size > options.max_values / values) {
      throw Error(
          fmt::format("{}: {} images of {} x {} pixels, {} values each; expected at most {} values together",
                      path, count, rows, columns, channels, options.max_values));
    }
    values *= size;
  }
  return values;
}

void AssignClasses(const std::string& path, const char* unit, const std::vector<std::string>& names,
                   const ImageOptions& options, ImageSet& images) {
  images.classes = options.classes.empty() ? SortedClasses(names) : options.classes;
  std::map<std::string, std::int64_t> numbers;
  for (const std::string& name : images.classes)
    numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = numbers.find(names[i]);
    if (found == numbers.end()) {
      throw Error(fmt::format("{}: {} {} is of class \"{}\"; expected one of {}", path, unit, i + 1, names[i],
                              fmt::join(images.classes, ", ")));
    }
    images.labels.push_back(found->second);
  }
}

ImageSet ReadImages(const std::string& path, const ImageOptions& options) {
  const std::string extension = fs::path(path).extension().string();
  if (fs::is_directory(fs::status(path)) || extension == ".png") return ReadPngs(path, options);
  return extension == ".csv" ? ReadImageCsv(path, options) : ReadIdx(path, options);
}

ImageSet SelectImages(const ImageSet& images, const std::vector<std::int64_t>& indices) {
  ImageSet selected = images;
  selected.pixels.clear();
  selected.labels.clear();
  selected.names.clear();
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= images.size())
      throw Error(fmt::format("image {}; expected 0 to {}", index, images.size() - 1));
    const auto i = static_cast<std::size_t>(index);
    const auto first = images.pixels.begin() + index * images.pixels_per_image();
    selected.pixels.insert(selected.pixels.end(), first, first + images.pixels_per_image());
    if (!images.labels.empty()) selected.labels.push_back(images.labels[i]);
    if (!images.names.empty()) selected.names.push_back(images.names[i]);
  }
  return selected;
}

}  // namespace regard::data
