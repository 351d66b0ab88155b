#include "data/unicode.h"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/edits.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <map>
#include <memory>

#include "engine/base/error.h"

namespace regard::data {
namespace {

using EditFunction = void (*)(const std::string& locale, icu::StringPiece in, icu::ByteSink& out,
                              icu::Edits& edits, UErrorCode& status);

void Check(UErrorCode status, const char* doing) {
  if (U_FAILURE(status)) throw Error(fmt::format("ICU failed {}: {}", doing, u_errorName(status)));
}

// Runs change on text and carries begin and end over by its list of edits.
void Apply(TrackedText& t, const std::string& locale, EditFunction change, const char* doing) {
  std::string out;
  icu::StringByteSink<std::string> sink(&out);
  icu::Edits edits;
  UErrorCode status = U_ZERO_ERROR;
  change(locale, icu::StringPiece(t.text.data(), static_cast<std::int32_t>(t.text.size())), sink, edits,
         status);
  Check(status, doing);
  if (!edits.hasChanges()) return;
  std::vector<std::size_t> begin, end;
  begin.reserve(out.size());
  end.reserve(out.size());
  for (auto it = edits.getFineIterator(); it.next(status);) {
    const auto from = static_cast<std::size_t>(it.sourceIndex());
    const auto old_length = static_cast<std::size_t>(it.oldLength());
    for (std::int32_t i = 0; i < it.newLength(); ++i) {
      const std::size_t first = it.hasChange() ? from : from + static_cast<std::size_t>(i);
      const std::size_t length = it.hasChange() ? old_length : 1;
      // An insertion stands at the end of what is before it.
      begin.push_back(first < t.begin.size() ? t.begin[first] : (t.end.empty() ? 0 : t.end.back()));
      end.push_back(length == 0 ? begin.back() : t.end[first + length - 1]);
    }
  }
  Check(status, doing);
  t.text = std::move(out);
  t.begin = std::move(begin);
  t.end = std::move(end);
}

using UTextPointer = std::unique_ptr<UText, decltype(&utext_close)>;

// Boundaries found by a break iterator over UTF-8, as consecutive segments.
std::vector<Segment> Segments(icu::BreakIterator& iterator, std::string_view text) {
  std::vector<Segment> segments;
  UErrorCode status = U_ZERO_ERROR;
  const UTextPointer source(
      utext_openUTF8(nullptr, text.data(), static_cast<std::int64_t>(text.size()), &status), &utext_close);
  Check(status, "opening a text");
  iterator.setText(source.get(), status);
  Check(status, "finding boundaries");
  std::int32_t from = iterator.first();
  for (std::int32_t to = iterator.next(); to != icu::BreakIterator::DONE; to = iterator.next()) {
    segments.push_back({static_cast<std::size_t>(from), static_cast<std::size_t>(to)});
    from = to;
  }
  return segments;
}

// ICU takes nearly any name for a locale: the language must at least look like one.
icu::Locale LocaleOf(const std::string& name) {
  if (name.empty()) return icu::Locale::getRoot();
  icu::Locale locale(name.c_str());
  const std::string_view language = locale.getLanguage();
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  if (locale.isBogus() || language.size() < 2 || !std::all_of(language.begin(), language.end(), is_letter)) {
    throw UsageError(
        fmt::format("locale \"{}\" is not one; expected a code such as \"fr\" or \"en_GB\"", name));
  }
  return locale;
}

// Break iterators are costly to make and not thread-safe: one for each thread and locale.
icu::BreakIterator& Iterator(bool words, const std::string& locale) {
  thread_local std::map<std::pair<bool, std::string>, std::unique_ptr<icu::BreakIterator>> iterators;
  std::unique_ptr<icu::BreakIterator>& iterator = iterators[{words, locale}];
  if (!iterator) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Locale where = LocaleOf(locale);
    iterator.reset(words ? icu::BreakIterator::createWordInstance(where, status)
                         : icu::BreakIterator::createCharacterInstance(where, status));
    Check(status, "making a boundary finder");
  }
  return *iterator;
}

// Calls visit(code point or negative, begin, end) for each code point or ill-formed sequence.
template <class Visit>
void ForEachCodePoint(std::string_view text, Visit visit) {
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t i = 0; i < size;) {
    const std::int64_t begin = i;
    UChar32 c = 0;
    U8_NEXT(text.data(), i, size, c);
    visit(c, static_cast<std::size_t>(begin), static_cast<std::size_t>(i));
  }
}

}  // namespace

std::size_t FindInvalidUtf8(std::string_view text) {
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t i = 0; i < size;) {
    const std::int64_t begin = i;
    UChar32 c = 0;
    U8_NEXT(text.data(), i, size, c);
    if (c < 0) return static_cast<std::size_t>(begin);
  }
  return std::string_view::npos;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachCodePoint(text, [&](UChar32 c, std::size_t begin, std::size_t end) {
    out += c < 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(begin, end - begin);
  });
  return out;
}

bool IsBlank(std::string_view text) {
  bool blank = true;
  ForEachCodePoint(
      text, [&](UChar32 c, std::size_t, std::size_t) { blank = blank && c >= 0 && u_isUWhiteSpace(c); });
  return blank;
}

std::string CollapseSpace(std::string_view text) {
  std::string out;
  bool space = false;
  ForEachCodePoint(text, [&](UChar32 c, std::size_t begin, std::size_t end) {
    if (c >= 0 && u_isUWhiteSpace(c)) {
      space = true;
      return;
    }
    if (space && !out.empty()) out += ' ';
    space = false;
    out += text.substr(begin, end - begin);
  });
  return out;
}

TrackedText::TrackedText(std::string_view original)
    : text(original), begin(original.size()), end(original.size()) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    begin[i] = i;
    end[i] = i + 1;
  }
}

void TrackedText::Normalize() {
  Apply(
      *this, "",
      [](const std::string&, icu::StringPiece in, icu::ByteSink& out, icu::Edits& edits, UErrorCode& status) {
        const icu::Normalizer2* form = icu::Normalizer2::getNFCInstance(status);
        if (U_SUCCESS(status)) form->normalizeUTF8(0, in, out, &edits, status);
      },
      "normalising a text");
}

void TrackedText::LowerCase(const std::string& locale) {
  Apply(
      *this, locale,
      [](const std::string& name, icu::StringPiece in, icu::ByteSink& out, icu::Edits& edits,
         UErrorCode& status) { icu::CaseMap::utf8ToLower(name.c_str(), 0, in, out, &edits, status); },
      "lower-casing a text");
}

void TrackedText::NoBreakSpacesToSpaces() {
  std::string out;
  std::vector<std::size_t> new_begin, new_end;
  ForEachCodePoint(text, [&](UChar32 c, std::size_t from, std::size_t to) {
    if (c == 0xA0 || c == 0x202F) {
      out += ' ';
      new_begin.push_back(begin[from]);
      new_end.push_back(end[to - 1]);
      return;
    }
    for (std::size_t i = from; i < to; ++i) {
      out += text[i];
      new_begin.push_back(begin[i]);
      new_end.push_back(end[i]);
    }
  });
  text = std::move(out);
  begin = std::move(new_begin);
  end = std::move(new_end);
}

std::vector<Segment> Graphemes(std::string_view text) { return Segments(Iterator(false, ""), text); }

std::vector<Segment> Words(std::string_view text, const std::string& locale) {
  std::vector<Segment> words;
  for (const Segment& segment : Segments(Iterator(true, locale), text)) {
    if (!IsBlank(text.substr(segment.begin, segment.end - segment.begin))) words.push_back(segment);
  }
  return words;
}

bool IsDigitAt(std::string_view text, std::size_t offset, std::size_t* next) {
  auto i = static_cast<std::int64_t>(offset);
  UChar32 c = 0;
  U8_NEXT(text.data(), i, static_cast<std::int64_t>(text.size()), c);
  *next = static_cast<std::size_t>(i);
  return c >= 0 && u_isdigit(c);
}

}  // namespace regard::data
