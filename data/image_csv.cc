#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <string_view>

#include "data/file.h"
#include "data/image_readers.h"
#include "data/pairs.h"
#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

// Fields between commas, without the spaces and double quotes around them.
std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    const auto trim = [&field](char c) {
      while (field.starts_with(c)) field.remove_prefix(1);
      while (field.ends_with(c)) field.remove_suffix(1);
    };
    trim(' ');
    if (field.size() >= 2 && field.starts_with('"') && field.ends_with('"')) trim('"');
    fields.push_back(field);
    if (comma == line.npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

bool ParseNumber(std::string_view field, float* value) {
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, *value);
  return error == std::errc() && stop == end && std::isfinite(*value);
}

class CsvReader {
 public:
  CsvReader(const std::string& path, const ImageOptions& options) : path_(path), options_(options) {}

  ImageSet Read() {
    std::istringstream in(ReadFile(path_));
    LineReader lines{in, path_};
    std::string line;
    while (lines.Next(&line)) {
      if (IsBlank(line)) continue;
      const std::vector<std::string_view> fields = Fields(line);
      if (fields_ == 0 && Start(fields)) continue;
      AddImage(fields, lines.line_number);
    }
    if (images_.pixels.empty())
      throw Error(fmt::format("{}: empty; expected a line of numbers for each image", path_));
    images_.white = *std::max_element(images_.pixels.begin(), images_.pixels.end());
    if (images_.white <= 0) images_.white = 1;
    if (options_.labelled) AssignClasses(path_, "image", labels_, options_, images_);
    return std::move(images_);
  }

 private:
  // Finds the columns and sizes from the first line; whether that is a header.
  bool Start(const std::vector<std::string_view>& fields) {
    float number = 0;
    const bool header = std::none_of(fields.begin(), fields.end(),
                                     [&](std::string_view field) { return ParseNumber(field, &number); });
    fields_ = fields.size();
    if (options_.labelled) FindLabel(fields, header);
    FindSizes(static_cast<std::int64_t>(fields_) - (options_.labelled ? 1 : 0));
    return header;
  }

  void FindLabel(const std::vector<std::string_view>& fields, bool header) {
    const auto place = [&](std::string_view name) {
      return static_cast<std::size_t>(std::find(fields.begin(), fields.end(), name) - fields.begin());
    };
    label_ = fields_ - 1;
    const std::string& wanted = options_.label;
    if (wanted.empty()) {
      for (const std::string_view name : {"class", "label"})
        if (header && place(name) < fields_) label_ = place(name);
      return;
    }
    std::size_t number = 0;
    const auto [stop, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
    if (error == std::errc() && *stop == '\0') {
      label_ = number - 1;  // 0 wraps around, and is refused with the rest
    } else {
      label_ = header ? place(wanted) : fields_;
    }
    if (label_ >= fields_) {
      throw UsageError(fmt::format("{}: no column \"{}\" for the label; expected a number from 1 to {}{}",
                                   path_, wanted, fields_, header ? ", or a name of the first line" : ""));
    }
  }

  void FindSizes(std::int64_t width) {
    std::int64_t rows = options_.rows, columns = options_.columns;
    if (rows == 0 && columns == 0) rows = std::llround(std::sqrt(static_cast<double>(width)));
    if (rows == 0 && columns > 0) rows = width / columns;
    if (columns == 0 && rows > 0) columns = width / rows;
    if (rows < 1 || columns < 1 || rows > width || columns > width || rows * columns != width ||
        (options_.rows == 0 && options_.columns == 0 && rows != columns)) {
      throw UsageError(fmt::format("{}: {} pixels a line do not make {}", path_, width,
                                   options_.rows == 0 && options_.columns == 0
                                       ? std::string("a square; expected the numbers of rows and columns")
                                       : fmt::format("{} x {}", rows, columns)));
    }
    images_.rows = rows;
    images_.columns = columns;
  }

  void AddImage(const std::vector<std::string_view>& fields, std::int64_t line) {
    if (fields.size() != fields_) {
      throw Error(fmt::format("{}: line {} has {} fields; expected {} as in the first line", path_, line,
                              fields.size(), fields_));
    }
    CheckedValues(path_, images_.size() + 1, images_.rows, images_.columns, 1, options_);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (options_.labelled && i == label_) {
        if (fields[i].empty()) throw Error(fmt::format("{}: line {} has an empty label", path_, line));
        labels_.emplace_back(fields[i]);
        continue;
      }
      float value = 0;
      if (!ParseNumber(fields[i], &value)) {
        throw Error(fmt::format("{}: line {}, field {} is \"{}\"; expected a number", path_, line, i + 1,
                                fields[i].substr(0, 40)));
      }
      images_.pixels.push_back(value);
    }
  }

  const std::string& path_;
  const ImageOptions& options_;
  ImageSet images_;
  std::size_t fields_ = 0, label_ = 0;
  std::vector<std::string> labels_;
};

}  // namespace

ImageSet ReadImageCsv(const std::string& path, const ImageOptions& options) {
  return CsvReader(path, options).Read();
}

}  // namespace regard::data
