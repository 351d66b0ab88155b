// Pairs of dates as people write them and as ISO 8601 has them, made from a seed: a task whose right
// alignment anyone can judge.
#ifndef REGARD_DATA_DATES_H_
#define REGARD_DATA_DATES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace regard::data {

// Dates run from 1970-01-01 to 2069-12-31: with that pivot a year of two digits has one meaning.
// Numeric dates with the year last are day first.
inline constexpr int kFirstDateYear = 1970, kLastDateYear = 2069;

// Bytes [begin, end) of a source.
struct ByteSpan {
  std::size_t begin = 0, end = 0;
};

struct DateStyle {
  std::string name;      // such as "en-ordinal-of-month"
  std::string language;  // "en", "fr", or "any" for numbers alone
};

struct DatePair {
  std::string source;         // "the third of March 2027"
  std::string target;         // "2027-03-03"
  ByteSpan year, month, day;  // where each stands in source
  std::size_t style = 0;      // index in DateStyles()
};

enum class DateSplit { kTrain, kHeldOut };

// All styles: at least 25, in two languages.
const std::vector<DateStyle>& DateStyles();

// One date in one style, in the style's usual case. Throws regard::Error for a date that does not exist or
// lies outside the range, or a style that is not there.
DatePair FormatDate(std::size_t style, std::chrono::year_month_day date);

// count pairs, the same for the same (seed, split): dates, styles and (sometimes) upper or lower case drawn
// at random. One date in ten, chosen by a hash of the date, is held out: no held-out date, and so no held-out
// source, is ever in training.
std::vector<DatePair> GenerateDates(std::int64_t count, std::uint64_t seed, DateSplit split);

// Whether a date is held out.
bool IsHeldOut(std::chrono::year_month_day date);

}  // namespace regard::data

#endif  // REGARD_DATA_DATES_H_
