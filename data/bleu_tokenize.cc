#include "data/bleu_tokenize.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

std::u32string Decode(std::string_view text) {
  std::u32string out;
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t i = 0; i < size;) {
    UChar32 c = 0;
    U8_NEXT_OR_FFFD(text.data(), i, size, c);
    out += static_cast<char32_t>(c);
  }
  return out;
}

void Append(std::string& out, char32_t c) {
  char bytes[U8_MAX_LENGTH];
  std::int32_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, c);
  out.append(bytes, static_cast<std::size_t>(length));
}

// What Python's str.split() and rstrip() take for white space: Unicode's and four separators of ASCII.
bool IsSpace(char32_t c) { return (c >= 0x1C && c <= 0x1F) || u_isUWhiteSpace(static_cast<UChar32>(c)); }

bool IsDigit(char32_t c) { return c >= '0' && c <= '9'; }
bool IsPeriodOrComma(char32_t c) { return c == '.' || c == ','; }
bool IsPunctuation(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_P_MASK) != 0; }
bool IsNumber(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK) != 0; }
bool IsSymbol(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_S_MASK) != 0; }

// ASCII punctuation that always stands alone: all but the apostrophe, comma, dash, period (and the space).
bool IsAsciiMark(char32_t c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

using Test = bool (*)(char32_t);

// Puts a space on both sides of each character of a kind.
std::u32string SpaceAround(const std::u32string& text, Test kind) {
  std::u32string out;
  for (const char32_t c : text) {
    if (kind(c)) {
      out += {U' ', c, U' '};
    } else {
      out += c;
    }
  }
  return out;
}

// Replaces each pair of neighbours (a, b) with both tests true, from left to right and without overlap, by
// a, space, b, space (after) or space, a, space, b.
template <class First, class Second>
std::u32string SplitPairs(const std::u32string& text, First first, Second second, bool after) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      out += text[i];
      continue;
    }
    if (!after) out += U' ';
    out += {text[i], U' ', text[i + 1]};
    if (after) out += U' ';
    ++i;
  }
  return out;
}

void ReplaceAll(std::u32string& text, std::u32string_view from, std::u32string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::u32string Tokenize13a(std::u32string text) {
  ReplaceAll(text, U"<skipped>", U"");
  ReplaceAll(text, U"-\n", U"");
  ReplaceAll(text, U"\n", U" ");
  ReplaceAll(text, U"&quot;", U"\"");
  ReplaceAll(text, U"&amp;", U"&");
  ReplaceAll(text, U"&lt;", U"<");
  ReplaceAll(text, U"&gt;", U">");
  text = SpaceAround(U' ' + text + U' ', IsAsciiMark);
  const auto not_digit = [](char32_t c) { return !IsDigit(c); };
  text = SplitPairs(text, not_digit, IsPeriodOrComma, true);
  text = SplitPairs(text, IsPeriodOrComma, not_digit, false);
  return SplitPairs(
      text, IsDigit, [](char32_t c) { return c == '-'; }, true);
}

std::u32string TokenizeInternational(std::u32string text) {
  const auto not_number = [](char32_t c) { return !IsNumber(c); };
  text = SplitPairs(text, not_number, IsPunctuation, true);
  text = SplitPairs(text, IsPunctuation, not_number, false);
  return SpaceAround(text, IsSymbol);
}

}  // namespace

std::vector<std::string> BleuTokens(std::string_view line, const std::string& tokenize, bool lowercase) {
  std::u32string text;
  if (lowercase) {
    TrackedText tracked(line);
    tracked.LowerCase("");
    text = Decode(tracked.text);
  } else {
    text = Decode(line);
  }
  while (!text.empty() && IsSpace(text.back())) text.pop_back();
  if (tokenize == "13a") {
    text = Tokenize13a(std::move(text));
  } else if (tokenize == "intl") {
    text = TokenizeInternational(std::move(text));
  } else if (tokenize == "char") {
    text = SpaceAround(text, [](char32_t) { return true; });
  } else if (tokenize != "none") {
    throw UsageError(
        fmt::format("BLEU tokeniser \"{}\" is not known; expected 13a, intl, char or none", tokenize));
  }
  std::vector<std::string> tokens;
  bool open = false;
  for (const char32_t c : text) {
    const bool space = IsSpace(c);
    if (!space && !open) tokens.emplace_back();
    if (!space) Append(tokens.back(), c);
    open = !space;
  }
  return tokens;
}

}  // namespace regard::data
