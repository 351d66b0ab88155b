#include "view/token_text.h"

#include <unicode/brkiter.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "engine/base/error.h"

namespace regard::view {
namespace {

struct CodePoint {
  UChar32 value = 0;     // negative: a byte that is not UTF-8
  std::string_view raw;  // its bytes
};

std::vector<CodePoint> Decode(std::string_view text) {
  std::vector<CodePoint> points;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto length = static_cast<std::int64_t>(text.size());
  std::int64_t at = 0;
  while (at < length) {
    const std::int64_t start = at;
    UChar32 value = 0;
    U8_NEXT(bytes, at, length, value);
    if (value < 0) at = start + 1;  // one byte at a time, so that each is shown
    points.push_back({value, text.substr(start, at - start)});
  }
  return points;
}

std::string ByteName(std::string_view raw) {
  char name[8];
  std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(static_cast<unsigned char>(raw[0])));
  return name;
}

std::string CodePointName(UChar32 value) {
  char name[16];
  std::snprintf(name, sizeof name, "<U+%04X>", static_cast<unsigned>(value));
  return name;
}

bool IsJoiner(UChar32 value) { return value == 0x200C || value == 0x200D; }

// The symbol for points[i], or "" where it can be seen as it is.
std::string Symbol(const std::vector<CodePoint>& points, std::size_t i, std::size_t first, std::size_t last) {
  const UChar32 value = points[i].value;
  if (value < 0) return ByteName(points[i].raw);
  if (value == ' ') return i < first || i >= last ? "·" : "";
  if (value == '\n') return "↵";
  if (value == '\t') return "⇥";
  // Joiners shape Persian, Indic scripts and emoji; they mean nothing at an end.
  if (IsJoiner(value) && i > first && i + 1 < last) return "";
  switch (u_charType(value)) {
    case U_CONTROL_CHAR:
    case U_FORMAT_CHAR:
    case U_LINE_SEPARATOR:
    case U_PARAGRAPH_SEPARATOR:
    case U_SPACE_SEPARATOR:
    case U_UNASSIGNED:
    case U_PRIVATE_USE_CHAR:
      return CodePointName(value);
    default:
      return "";
  }
}

}  // namespace

std::vector<TextRun> ShownToken(std::string_view token) {
  if (token.empty()) return {{"∅", true}};
  const std::vector<CodePoint> points = Decode(token);
  std::size_t first = 0;
  while (first < points.size() && points[first].value == ' ') ++first;
  std::size_t last = points.size();
  while (last > first && points[last - 1].value == ' ') --last;

  std::vector<TextRun> runs;
  const auto append = [&](std::string_view text, bool symbol) {
    if (runs.empty() || runs.back().symbol != symbol) runs.push_back({"", symbol});
    runs.back().text += text;
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string symbol = Symbol(points, i, first, last);
    if (!symbol.empty()) {
      append(symbol, true);
      continue;
    }
    const bool mark = (U_MASK(u_charType(points[i].value)) & U_GC_M_MASK) != 0;
    if (mark && (runs.empty() || runs.back().symbol)) append("◌", true);
    append(points[i].raw, false);
  }
  return runs;
}

std::string ShownText(std::string_view token) {
  std::string text;
  for (const TextRun& run : ShownToken(token)) text += run.text;
  return text;
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  for (const CodePoint& point : Decode(text)) {
    if (point.value < 0) {
      valid += ByteName(point.raw);
    } else {
      valid += point.raw;
    }
  }
  return valid;
}

std::vector<Grapheme> Graphemes(const std::string& utf8) {
  const icu::UnicodeString text = icu::UnicodeString::fromUTF8(utf8);
  UErrorCode code = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), code));
  if (U_FAILURE(code)) throw Error(std::string("ICU has no character breaks: ") + u_errorName(code));
  breaks->setText(text);
  std::vector<Grapheme> graphemes;
  for (std::int32_t start = breaks->first(), end = breaks->next(); end != icu::BreakIterator::DONE;
       start = end, end = breaks->next()) {
    Grapheme grapheme;
    text.tempSubStringBetween(start, end).toUTF8String(grapheme.text);
    for (std::int32_t at = start; at < end; at = text.moveIndex32(at, 1)) {
      const UChar32 value = text.char32At(at);
      const int east_asian = u_getIntPropertyValue(value, UCHAR_EAST_ASIAN_WIDTH);
      const bool invisible = (U_MASK(u_charType(value)) & (U_GC_MN_MASK | U_GC_ME_MASK | U_GC_CF_MASK)) != 0;
      const bool wide = east_asian == U_EA_WIDE || east_asian == U_EA_FULLWIDTH;
      grapheme.width = std::max(grapheme.width, invisible ? 0 : wide ? 2 : 1);
    }
    graphemes.push_back(std::move(grapheme));
  }
  return graphemes;
}

int DisplayWidth(const std::string& utf8) {
  int width = 0;
  for (const Grapheme& grapheme : Graphemes(utf8)) width += grapheme.width;
  return width;
}

std::string Shorten(const std::string& utf8, int width) {
  const std::vector<Grapheme> graphemes = Graphemes(utf8);
  std::string whole, cut;
  int used = 0;
  for (const Grapheme& grapheme : graphemes) {
    used += grapheme.width;
    if (used <= width - 1) cut += grapheme.text;
    whole += grapheme.text;
  }
  return used <= width ? whole : cut + "…";
}

}  // namespace regard::view
