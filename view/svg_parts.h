// What the pictures write into their SVG files.
#ifndef REGARD_VIEW_SVG_PARTS_H_
#define REGARD_VIEW_SVG_PARTS_H_

#include <cstdio>
#include <string>

#include "view/markup.h"

namespace regard::view {

// A coordinate, to a tenth of a pixel.
inline std::string At(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// One line of text that begins at x, on the base line y; `shown` is escaped, `attributes` are not.
inline std::string Text(double x, double y, const std::string& attributes, const std::string& shown) {
  std::string text = "<text x=\"" + At(x) + "\" y=\"" + At(y) + "\"";
  if (!attributes.empty()) text += " " + attributes;
  return text + ">" + EscapeShown(shown) + "</text>\n";
}

}  // namespace regard::view

#endif  // REGARD_VIEW_SVG_PARTS_H_
