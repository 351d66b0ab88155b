// Ends a stream of text at the first of some strings, without ever showing a part of one.
#ifndef REGARD_DATA_STOP_STRINGS_H_
#define REGARD_DATA_STOP_STRINGS_H_

#include <string>
#include <string_view>
#include <vector>

namespace regard::data {

// The stop string that is complete first ends the text before it; of several that are complete at once the
// longest does. What is returned together does not depend on how the text is cut into pieces.
class StopStrings {
 public:
  // Without stop strings everything passes. Throws regard::UsageError for an empty one.
  explicit StopStrings(std::vector<std::string> stops);

  // The text that can be shown now: what may be the beginning of a stop string is held back. After the stop:
  // nothing.
  std::string Push(std::string_view piece);
  bool stopped() const { return stopped_; }
  // The text held back when the stream ends without a stop.
  std::string Finish();

 private:
  // The longest stop string that text ends in; 0 when it ends in none.
  std::size_t EndsInStop(std::string_view text) const;
  // Bytes at the end of text that a stop string begins with.
  std::size_t BeginsStop(std::string_view text) const;

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace regard::data

#endif  // REGARD_DATA_STOP_STRINGS_H_
