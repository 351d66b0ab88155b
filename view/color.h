// From a weight to a colour, the same in the page, the SVG and the terminal.
#ifndef REGARD_VIEW_COLOR_H_
#define REGARD_VIEW_COLOR_H_

#include <array>
#include <cstdint>
#include <string>

#include "view/attention_view.h"

namespace regard::view {

struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
};

// Stops at equal distances, to be joined linearly in sRGB. Their lightness in OKLCH falls (on light ground)
// or rises (on dark ground) evenly, so that equal steps of weight look equal, also without colour vision.
using Ramp = std::array<std::uint32_t, 11>;  // 0xRRGGBB
inline constexpr Ramp kLightRamp = {0xeff6f5, 0xb9e8e7, 0x85d6df, 0x51c2d9, 0x1babd2, 0x0092c7,
                                    0x0078b6, 0x1d5f9f, 0x284881, 0x29345f, 0x22233b};
inline constexpr Ramp kDarkRamp = {0x232335, 0x2b335a, 0x27467d, 0x0a5d9b, 0x0077b1, 0x0092be,
                                   0x00abc2, 0x07c2c2, 0x6bd5c2, 0xa7e5c9, 0xdaf3de};

struct Range {
  float low = 0, high = 1;
  // Where a finite weight lies in the range: 0..1.
  float Place(float weight) const;
};

Rgb RampColor(const Ramp& ramp, float place);
std::string HexColor(std::uint32_t color);  // "#rrggbb"

enum class Cell { kWeight, kMasked, kNotFinite };
Cell CellKind(const AttentionPanel& panel, std::size_t index);
bool Has(const AttentionDocument& document, Cell kind);  // some cell is of this kind

// The range that all panels share; [0, 1] where nothing can be coloured, or all that can is 0.
Range SharedRange(const AttentionDocument& document);

}  // namespace regard::view

#endif  // REGARD_VIEW_COLOR_H_
