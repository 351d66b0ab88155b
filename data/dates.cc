#include "data/dates.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "data/date_words.h"
#include "data/random.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

// A style's pattern: {y...} year, {m...} month, {d...} day, {w...} day of the week, each spelled as its name
// says; everything else stands for itself.
//   yyyy 2027   yy 27   ywords two thousand twenty-seven   ypairs twenty twenty-seven
//   m 3   mm 03   mon Mar   month March
//   d 3   dd 03   dth 3rd, 1er   dwords third, trois
//   wd Wed   wday Wednesday
struct StylePattern {
  const char *name, *language, *pattern;
};

constexpr StylePattern kPatterns[] = {
    {"iso", "any", "{yyyy}-{mm}-{dd}"},
    {"slashes", "any", "{dd}/{mm}/{yyyy}"},
    {"slashes-short", "any", "{d}/{m}/{yy}"},
    {"slashes-year-first", "any", "{yyyy}/{mm}/{dd}"},
    {"dots", "any", "{dd}.{mm}.{yyyy}"},
    {"dots-short", "any", "{d}.{m}.{yy}"},
    {"dots-year-first", "any", "{yyyy}.{mm}.{dd}"},
    {"dashes", "any", "{dd}-{mm}-{yyyy}"},
    {"compact", "any", "{yyyy}{mm}{dd}"},
    {"en-day-month-year", "en", "{d} {month} {yyyy}"},
    {"en-day-mon-year", "en", "{d} {mon} {yyyy}"},
    {"en-month-day-year", "en", "{month} {d}, {yyyy}"},
    {"en-mon-day-year", "en", "{mon} {d}, {yyyy}"},
    {"en-month-ordinal", "en", "{month} {dth}, {yyyy}"},
    {"en-ordinal-of-month", "en", "{dth} of {month} {yyyy}"},
    {"en-the-ordinal-of-month", "en", "the {dth} of {month}, {yyyy}"},
    {"en-the-words-of-month", "en", "the {dwords} of {month} {yyyy}"},
    {"en-words", "en", "{dwords} of {month} {ywords}"},
    {"en-words-month-first", "en", "{month} {dwords}, {ypairs}"},
    {"en-weekday-short", "en", "{wd} {d} {mon} {yy}"},
    {"en-weekday-mail", "en", "{wd}, {dd} {mon} {yyyy}"},
    {"en-weekday", "en", "{wday} {d} {month} {yyyy}"},
    {"en-weekday-month-first", "en", "{wday}, {month} {d}, {yyyy}"},
    {"en-weekday-the-ordinal", "en", "{wday} the {dth} of {month} {yyyy}"},
    {"en-dashes", "en", "{dd}-{mon}-{yyyy}"},
    {"en-apostrophe", "en", "{d} {mon} '{yy}"},
    {"en-year-first", "en", "{yyyy} {month} {d}"},
    {"fr-jour-mois-annee", "fr", "{dth} {month} {yyyy}"},
    {"fr-le-jour", "fr", "le {dth} {month} {yyyy}"},
    {"fr-annee-courte", "fr", "{dth} {month} {yy}"},
    {"fr-abrege", "fr", "{dth} {mon} {yyyy}"},
    {"fr-semaine", "fr", "{wday} {dth} {month} {yyyy}"},
    {"fr-le-semaine", "fr", "le {wday} {dth} {month} {yyyy}"},
    {"fr-semaine-abrege", "fr", "{wd} {dth} {mon} {yy}"},
    {"fr-lettres", "fr", "le {dwords} {month} {ywords}"},
    {"fr-semaine-lettres", "fr", "{wday} {dwords} {month} {ywords}"},
    {"fr-an", "fr", "{dth} {month} de l'an {yyyy}"},
};

enum class Case { kUsual, kLower, kUpper };

// What stands for one field of a pattern.
std::string Field(std::string_view field, bool french, year_month_day date) {
  const int year = static_cast<int>(date.year());
  const unsigned month = static_cast<unsigned>(date.month()), day = static_cast<unsigned>(date.day());
  const unsigned weekday = std::chrono::weekday(sys_days(date)).c_encoding();  // 0: Sunday
  if (field == "yyyy") return fmt::format("{}", year);
  if (field == "yy") return fmt::format("{:02}", year % 100);
  if (field == "ywords") return french ? FrenchYear(year) : EnglishYear(year);
  if (field == "ypairs") return EnglishYearInPairs(year);
  if (field == "m") return fmt::format("{}", month);
  if (field == "mm") return fmt::format("{:02}", month);
  if (field == "mon") return ShortMonth(french, month);
  if (field == "month") return LongMonth(french, month);
  if (field == "d") return fmt::format("{}", day);
  if (field == "dd") return fmt::format("{:02}", day);
  if (field == "dth") return french ? FrenchOrdinal(day) : EnglishOrdinal(day);
  if (field == "dwords") return french ? FrenchDay(day) : EnglishDay(day);
  if (field == "wd") return ShortWeekday(french, weekday);
  if (field == "wday") return LongWeekday(french, weekday);
  throw Error(fmt::format("date pattern: field \"{}\" is not known", field));
}

// To the other case without a change of length: the letters beyond ASCII that dates have are two bytes either
// way (é û: C3 A9, C3 BB; É Û: C3 89, C3 9B).
void ChangeCase(std::string& text, Case to) {
  bool after_c3 = false;
  for (char& letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (to == Case::kUpper && byte >= 'a' && byte <= 'z') letter = static_cast<char>(byte - 32);
    if (to == Case::kLower && byte >= 'A' && byte <= 'Z') letter = static_cast<char>(byte + 32);
    if (to == Case::kUpper && after_c3 && byte >= 0xA0) letter = static_cast<char>(byte - 32);
    after_c3 = byte == 0xC3;
  }
}

DatePair Format(std::size_t style, year_month_day date, Case letters) {
  const StylePattern& pattern = kPatterns[style];
  DatePair pair;
  pair.style = style;
  for (std::string_view rest = pattern.pattern; !rest.empty();) {
    if (rest.front() != '{') {
      pair.source += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    const std::size_t close = rest.find('}');
    const std::string_view field = rest.substr(1, close - 1);
    const std::size_t begin = pair.source.size();
    pair.source += Field(field, pattern.language == std::string_view("fr"), date);
    const ByteSpan span{begin, pair.source.size()};
    if (field.front() == 'y') pair.year = span;
    if (field.front() == 'm') pair.month = span;
    if (field.front() == 'd') pair.day = span;
    rest.remove_prefix(close + 1);
  }
  if (letters != Case::kUsual) ChangeCase(pair.source, letters);
  pair.target = fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                            static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return pair;
}

sys_days FirstDay() { return std::chrono::year(kFirstDateYear) / 1 / 1; }
sys_days LastDay() { return std::chrono::year(kLastDateYear) / 12 / 31; }

}  // namespace

const std::vector<DateStyle>& DateStyles() {
  static const std::vector<DateStyle> styles = [] {
    std::vector<DateStyle> all;
    for (const StylePattern& pattern : kPatterns) all.push_back({pattern.name, pattern.language});
    return all;
  }();
  return styles;
}

DatePair FormatDate(std::size_t style, year_month_day date) {
  if (style >= DateStyles().size()) {
    throw Error(fmt::format("date style {}; expected 0 to {}", style, DateStyles().size() - 1));
  }
  if (!date.ok() || sys_days(date) < FirstDay() || sys_days(date) > LastDay()) {
    throw Error(fmt::format("date {}-{}-{}; expected one from {}-01-01 to {}-12-31",
                            static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                            static_cast<unsigned>(date.day()), kFirstDateYear, kLastDateYear));
  }
  return Format(style, date, Case::kUsual);
}

bool IsHeldOut(year_month_day date) {
  const auto days = sys_days(date).time_since_epoch().count();
  return Mix(static_cast<std::uint64_t>(days)) % 10 == 0;
}

std::vector<DatePair> GenerateDates(std::int64_t count, std::uint64_t seed, DateSplit split) {
  if (count < 0) throw UsageError(fmt::format("{} dates asked; expected 0 or more", count));
  Random random(seed);
  const auto days = static_cast<std::uint64_t>((LastDay() - FirstDay()).count()) + 1;
  std::vector<DatePair> pairs;
  while (static_cast<std::int64_t>(pairs.size()) < count) {
    const year_month_day date = FirstDay() + std::chrono::days(random.Below(days));
    const std::size_t style = random.Below(DateStyles().size());
    const std::uint64_t letters = random.Below(10);  // one in ten in capitals, one in ten in small letters
    if (IsHeldOut(date) != (split == DateSplit::kHeldOut)) continue;
    pairs.push_back(Format(style, date,
                           letters == 0   ? Case::kUpper
                           : letters == 1 ? Case::kLower
                                          : Case::kUsual));
  }
  return pairs;
}

}  // namespace regard::data
