// For tests of what is drawn.
#ifndef REGARD_VIEW_COUNT_TEXT_H_
#define REGARD_VIEW_COUNT_TEXT_H_

#include <cstddef>
#include <string>

namespace regard::view {

// How often `part` stands in `text`.
inline std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace regard::view

#endif  // REGARD_VIEW_COUNT_TEXT_H_
