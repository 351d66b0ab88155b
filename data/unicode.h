// Unicode text: checks, boundaries, and changes that remember where each byte came from. Through ICU.
#ifndef REGARD_DATA_UNICODE_H_
#define REGARD_DATA_UNICODE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace regard::data {

// Offset of the first byte of the first ill-formed sequence; npos when text is UTF-8.
std::size_t FindInvalidUtf8(std::string_view text);
// Each maximal ill-formed sequence becomes U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

// Only white space (of any script), or nothing.
bool IsBlank(std::string_view text);
// White space trimmed, and each run of it one space.
std::string CollapseSpace(std::string_view text);

// A text together with the bytes of the original that each of its bytes stands for: byte i comes from
// [begin[i], end[i]) of the original. Where a change has no finer answer than a run, the whole run is given.
struct TrackedText {
  std::string text;
  std::vector<std::size_t> begin, end;

  explicit TrackedText(std::string_view original);
  void Normalize();                           // to form C
  void LowerCase(const std::string& locale);  // by the rules of the locale; empty: the root locale's
  void NoBreakSpacesToSpaces();               // U+00A0 and U+202F
};

// Bytes [begin, end) of a text.
struct Segment {
  std::size_t begin, end;
};

// User-perceived characters (extended grapheme clusters), all of the text.
std::vector<Segment> Graphemes(std::string_view text);

// Words and punctuation by ICU's word boundaries for the locale, without the white space between them.
// Throws regard::UsageError naming a locale that ICU does not take.
std::vector<Segment> Words(std::string_view text, const std::string& locale);

// Whether the code point that starts at offset is a decimal digit of any script; *next: where the following
// starts.
bool IsDigitAt(std::string_view text, std::size_t offset, std::size_t* next);

}  // namespace regard::data

#endif  // REGARD_DATA_UNICODE_H_
