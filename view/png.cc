#include "view/png.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace regard::view {
namespace {

void AddNumber(std::string* bytes, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes->push_back(static_cast<char>(number >> shift & 0xffU));
}

const Bytef* Raw(const std::string& bytes) { return reinterpret_cast<const Bytef*>(bytes.data()); }

// Length, type, content and their check sum.
void AddChunk(std::string* file, const std::string& type, const std::string& content) {
  AddNumber(file, static_cast<std::uint32_t>(content.size()));
  const std::string body = type + content;
  *file += body;
  AddNumber(file, static_cast<std::uint32_t>(crc32(0, Raw(body), static_cast<uInt>(body.size()))));
}

}  // namespace

std::string PngBytes(std::int64_t rows, std::int64_t columns, std::int64_t channels,
                     std::span<const float> pixels) {
  std::string lines;
  const std::int64_t width = columns * channels;
  for (std::int64_t i = 0; i < rows * width; ++i) {
    if (i % width == 0) lines.push_back('\0');  // no filter
    const float value = std::clamp(pixels[static_cast<std::size_t>(i)], 0.0F, 1.0F);
    lines.push_back(static_cast<char>(std::lround(255 * value)));
  }
  uLongf size = compressBound(static_cast<uLong>(lines.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, Raw(lines), static_cast<uLong>(lines.size()));
  packed.resize(size);

  std::string header;
  AddNumber(&header, static_cast<std::uint32_t>(columns));
  AddNumber(&header, static_cast<std::uint32_t>(rows));
  header += std::string{8, static_cast<char>(channels == 3 ? 2 : 0), 0, 0, 0};
  std::string file = "\x89PNG\r\n\x1a\n";
  AddChunk(&file, "IHDR", header);
  AddChunk(&file, "IDAT", packed);
  AddChunk(&file, "IEND", "");
  return file;
}

std::string Base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j)
      text.push_back(i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63U]);
  }
  return text;
}

}  // namespace regard::view
