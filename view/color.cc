#include "view/color.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace regard::view {

float Range::Place(float weight) const {
  // In double: high - low may not fit a float.
  const double place = (static_cast<double>(weight) - low) / (static_cast<double>(high) - low);
  return static_cast<float>(std::clamp(place, 0.0, 1.0));
}

Rgb RampColor(const Ramp& ramp, float place) {
  const float position = std::clamp(place, 0.0F, 1.0F) * static_cast<float>(ramp.size() - 1);
  const std::size_t stop = std::min(static_cast<std::size_t>(position), ramp.size() - 2);
  const float part = position - static_cast<float>(stop);
  const auto mix = [&](int shift) {
    const auto from = static_cast<float>((ramp[stop] >> shift) & 0xff);
    const auto to = static_cast<float>((ramp[stop + 1] >> shift) & 0xff);
    return static_cast<std::uint8_t>(std::lround(from + (to - from) * part));
  };
  return {mix(16), mix(8), mix(0)};
}

std::string HexColor(std::uint32_t color) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "#";
  for (int shift = 20; shift >= 0; shift -= 4) text += kDigits[(color >> shift) & 0xf];
  return text;
}

Cell CellKind(const AttentionPanel& panel, std::size_t index) {
  if (!panel.masked.empty() && panel.masked[index] != 0) return Cell::kMasked;
  return std::isfinite(panel.weights[index]) ? Cell::kWeight : Cell::kNotFinite;
}

bool Has(const AttentionDocument& document, Cell kind) {
  for (const AttentionPanel& panel : document.panels) {
    for (std::size_t i = 0; i < panel.weights.size(); ++i) {
      if (CellKind(panel, i) == kind) return true;
    }
  }
  return false;
}

Range SharedRange(const AttentionDocument& document) {
  Range range{0, -std::numeric_limits<float>::infinity()};
  for (const AttentionPanel& panel : document.panels) {
    for (std::size_t i = 0; i < panel.weights.size(); ++i) {
      if (CellKind(panel, i) != Cell::kWeight) continue;
      range.low = std::min(range.low, panel.weights[i]);
      range.high = std::max(range.high, panel.weights[i]);
    }
  }
  if (!(range.high > range.low)) range.high = range.low + std::max(1.0F, std::abs(range.low));
  return range;
}

}  // namespace regard::view
