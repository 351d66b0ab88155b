// Text inside HTML and SVG.
#ifndef REGARD_VIEW_MARKUP_H_
#define REGARD_VIEW_MARKUP_H_

#include <string>
#include <string_view>

namespace regard::view {

// Text from ShownText as markup: what markup gives a meaning is escaped.
inline std::string EscapeShown(std::string_view shown) {
  std::string escaped;
  for (const char letter : shown) {
    switch (letter) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += letter;
    }
  }
  return escaped;
}

}  // namespace regard::view

#endif  // REGARD_VIEW_MARKUP_H_
