#include "data/stop_strings.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"

namespace regard::data {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_)
    if (stop.empty()) throw UsageError("an empty stop string; expected a text to stop at");
}

std::string StopStrings::Push(std::string_view piece) {
  if (stopped_) return "";
  // held_ holds no whole stop string: one can only end in the new piece.
  std::size_t end = held_.size();
  held_ += piece;
  for (; end < held_.size();) {
    const std::size_t stop = EndsInStop(std::string_view(held_).substr(0, ++end));
    if (stop == 0) continue;
    stopped_ = true;
    held_.resize(end - stop);
    return std::exchange(held_, "");
  }
  const std::size_t shown = held_.size() - BeginsStop(held_);
  std::string text = held_.substr(0, shown);
  held_.erase(0, shown);
  return text;
}

std::string StopStrings::Finish() { return std::exchange(held_, ""); }

std::size_t StopStrings::EndsInStop(std::string_view text) const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_)
    if (text.ends_with(stop)) longest = std::max(longest, stop.size());
  return longest;
}

std::size_t StopStrings::BeginsStop(std::string_view text) const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t n = std::min(stop.size() - 1, text.size()); n > longest; --n)
      if (text.ends_with(std::string_view(stop).substr(0, n))) longest = n;
  }
  return longest;
}

}  // namespace regard::data
