// Pixels as a PNG file inside other markup.
#ifndef REGARD_VIEW_PNG_H_
#define REGARD_VIEW_PNG_H_

#include <cstdint>
#include <span>
#include <string>

namespace regard::view {

// The bytes of a PNG file (8 bits; channels 1: grey, 3: RGB) of pixels [rows, columns, channels], 0..1, what
// is beyond is cut off.
std::string PngBytes(std::int64_t rows, std::int64_t columns, std::int64_t channels,
                     std::span<const float> pixels);

// RFC 4648, with padding.
std::string Base64(const std::string& bytes);

}  // namespace regard::view

#endif  // REGARD_VIEW_PNG_H_
