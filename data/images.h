// Images of one size with their classes, from CSV files, IDX files (MNIST's) and folders of PNG files.
#ifndef REGARD_DATA_IMAGES_H_
#define REGARD_DATA_IMAGES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace regard::data {

struct ImageSet {
  std::int64_t rows = 0, columns = 0, channels = 1;
  std::vector<float> pixels;  // [N, rows, columns, channels], as the file has them
  double white = 255;         // the value of full brightness: 255; in CSV files the largest that occurs
  std::vector<std::int64_t> labels;  // [N], numbers of classes; empty where the images have none
  std::vector<std::string> classes;  // distinct; by number where all are whole numbers, else in byte order
  std::vector<std::string> names;    // [N], paths of PNG files within their folder; empty for other files

  std::int64_t pixels_per_image() const { return rows * columns * channels; }
  std::int64_t size() const {
    return rows == 0 ? 0 : static_cast<std::int64_t>(pixels.size()) / pixels_per_image();
  }
};

struct ImageOptions {
  bool labelled = true;
  // CSV: the label's column, by name or number from 1; empty: the one named "label" or "class", else the
  // last. IDX: the file of labels; empty: the name with "labels-idx1" in place of "images-idx3".
  std::string label;
  std::int64_t rows = 0, columns = 0;  // CSV: 0: as the other asks for, both 0: a square
  std::vector<std::string> classes;  // the only classes that may occur, numbered so; empty: those that occur
  std::int64_t max_values = std::int64_t{1} << 28;  // pixels times channels of all images: 1 GiB
};

// Reads by name: a folder or *.png -> PNG, *.csv -> CSV, anything else -> IDX. All throw regard::Error naming
// the file and what is wrong: missing, empty, cut short, not of its kind, sizes that do not match or exceed
// max_values (before memory is taken for them), a label that is no class.
ImageSet ReadImages(const std::string& path, const ImageOptions& options = {});

// One image a line: pixels row by row, and the label. Numbers of any kind, separated by commas. A first line
// without any number is a header. Blank lines are skipped.
ImageSet ReadImageCsv(const std::string& path, const ImageOptions& options = {});

// Bytes [N, rows, columns] or [N, rows, columns, channels], plain or compressed (gzip); labels [N].
ImageSet ReadIdx(const std::string& path, const ImageOptions& options = {});

// Labelled: a folder of folders, one for each class, named as it. Otherwise: the PNG files of a folder and of
// its folders, or one file. In the order of their names. Grey where all are grey, else RGB; 16 bits are
// reduced to 8, what is transparent is laid over black.
ImageSet ReadPngs(const std::string& path, const ImageOptions& options = {});

// The images with these numbers, in this order.
ImageSet SelectImages(const ImageSet& images, const std::vector<std::int64_t>& indices);

}  // namespace regard::data

#endif  // REGARD_DATA_IMAGES_H_
