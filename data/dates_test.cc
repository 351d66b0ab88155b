#include "data/dates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <unordered_map>

#include "data/test_files.h"
#include "data/unicode.h"

namespace regard::data {
namespace {

using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

std::size_t Style(const std::string& name) {
  const auto& styles = DateStyles();
  const auto at =
      std::find_if(styles.begin(), styles.end(), [&](const auto& style) { return style.name == name; });
  EXPECT_NE(at, styles.end()) << name;
  return static_cast<std::size_t>(at - styles.begin());
}

std::string Source(const std::string& style, int y, unsigned m, unsigned d) {
  return FormatDate(Style(style), year(y) / std::chrono::month(m) / std::chrono::day(d)).source;
}

std::string Part(const DatePair& pair, ByteSpan span) {
  return pair.source.substr(span.begin, span.end - span.begin);
}

template <class Visit>
void ForEachDay(int first_year, int last_year, Visit visit) {
  for (sys_days day = year(first_year) / 1 / 1; day <= sys_days(year(last_year) / 12 / 31);
       day += std::chrono::days(1)) {
    visit(year_month_day(day));
  }
}

TEST(Dates, AtLeast25StylesInTwoLanguages) {
  std::set<std::string> names;
  std::map<std::string, int> languages;
  for (const DateStyle& style : DateStyles()) {
    names.insert(style.name);
    ++languages[style.language];
  }
  EXPECT_GE(names.size(), 25u);
  EXPECT_EQ(names.size(), DateStyles().size());
  EXPECT_GE(languages["en"], 10);
  EXPECT_GE(languages["fr"], 10);
}

TEST(Dates, SpotValues) {
  EXPECT_EQ(Source("slashes", 2027, 3, 4), "04/03/2027");
  EXPECT_EQ(Source("slashes-short", 1970, 3, 4), "4/3/70");
  EXPECT_EQ(Source("dots-year-first", 2027, 3, 3), "2027.03.03");
  EXPECT_EQ(Source("compact", 2027, 3, 3), "20270303");
  EXPECT_EQ(Source("en-the-words-of-month", 2027, 3, 3), "the third of March 2027");
  EXPECT_EQ(Source("en-weekday-short", 2027, 3, 3), "Wed 3 Mar 27");
  EXPECT_EQ(Source("en-month-ordinal", 2027, 3, 3), "March 3rd, 2027");
  EXPECT_EQ(Source("en-words", 2026, 2, 27), "twenty-seventh of February two thousand twenty-six");
  EXPECT_EQ(Source("en-words", 1970, 12, 30), "thirtieth of December nineteen seventy");
  EXPECT_EQ(Source("en-words", 2000, 2, 29), "twenty-ninth of February two thousand");
  EXPECT_EQ(Source("en-words-month-first", 2009, 5, 12), "May twelfth, twenty oh nine");
  EXPECT_EQ(Source("en-words-month-first", 2010, 5, 21), "May twenty-first, twenty ten");
  EXPECT_EQ(Source("en-words-month-first", 2000, 5, 20), "May twentieth, two thousand");
  EXPECT_EQ(Source("en-weekday-the-ordinal", 2026, 11, 22), "Sunday the 22nd of November 2026");
  EXPECT_EQ(Source("fr-le-jour", 2027, 3, 1), "le 1er mars 2027");
  EXPECT_EQ(Source("fr-semaine", 2027, 3, 3), "mercredi 3 mars 2027");
  EXPECT_EQ(Source("fr-annee-courte", 2005, 8, 3), "3 août 05");
  EXPECT_EQ(Source("fr-lettres", 2027, 3, 3), "le trois mars deux mille vingt-sept");
  EXPECT_EQ(Source("fr-lettres", 2021, 2, 1), "le premier février deux mille vingt et un");
  EXPECT_EQ(Source("fr-lettres", 1980, 12, 31), "le trente et un décembre mille neuf cent quatre-vingts");
  EXPECT_EQ(Source("fr-lettres", 1981, 8, 21), "le vingt et un août mille neuf cent quatre-vingt-un");
  EXPECT_EQ(Source("fr-lettres", 1971, 8, 17), "le dix-sept août mille neuf cent soixante et onze");
  EXPECT_EQ(Source("fr-lettres", 1979, 8, 16), "le seize août mille neuf cent soixante-dix-neuf");
  EXPECT_EQ(Source("fr-lettres", 1991, 1, 11), "le onze janvier mille neuf cent quatre-vingt-onze");
  EXPECT_EQ(Source("fr-lettres", 1999, 1, 30), "le trente janvier mille neuf cent quatre-vingt-dix-neuf");
  EXPECT_EQ(Source("fr-lettres", 2061, 1, 22), "le vingt-deux janvier deux mille soixante et un");
  EXPECT_EQ(Source("fr-semaine-abrege", 2027, 7, 14), "mer. 14 juill. 27");
}

// Reads the numbers of a numeric style by its separators alone.
std::string ParseNumeric(const std::string& text) {
  int a = 0, b = 0, c = 0;
  char first = 0, second = 0;
  if (std::sscanf(text.c_str(), "%d%c%d%c%d", &a, &first, &b, &second, &c) != 5) {
    EXPECT_EQ(std::sscanf(text.c_str(), "%4d%2d%2d", &a, &b, &c), 3) << text;
  } else if (text.find(first) != 4) {
    std::swap(a, c);
    // "%d" takes a dash for a sign: -3 is the month 3 after a dash.
  }
  if (a < 70) a += 2000;
  if (a < 100) a += 1900;
  char out[64];
  std::snprintf(out, sizeof out, "%04d-%02d-%02d", a, std::abs(b), std::abs(c));
  return out;
}

TEST(Dates, NumericStylesRoundTripOnEveryDay) {
  for (std::size_t style = 0; style < DateStyles().size(); ++style) {
    if (DateStyles()[style].language != "any") continue;
    ForEachDay(kFirstDateYear, kLastDateYear, [&](year_month_day date) {
      const DatePair pair = FormatDate(style, date);
      ASSERT_EQ(ParseNumeric(pair.source), pair.target) << pair.source;
    });
  }
}

TEST(Dates, NoSourceHasTwoMeanings) {
  std::unordered_map<std::string, std::string> meanings;
  for (std::size_t style = 0; style < DateStyles().size(); ++style) {
    ForEachDay(kFirstDateYear, kLastDateYear, [&](year_month_day date) {
      DatePair pair = FormatDate(style, date);
      std::transform(pair.source.begin(), pair.source.end(), pair.source.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      const auto [at, added] = meanings.emplace(pair.source, pair.target);
      ASSERT_EQ(at->second, pair.target) << pair.source;
    });
  }
  EXPECT_GT(meanings.size(), 30u * 36525u);
}

// Sakamoto's method, 0: Sunday.
int DayOfWeek(int y, int m, int d) {
  static constexpr int kOffsets[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
  y -= m < 3;
  return (y + y / 4 - y / 100 + y / 400 + kOffsets[m - 1] + d) % 7;
}

TEST(Dates, DaysOfTheWeekAreRight) {
  const std::vector<std::string> english = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const std::vector<std::string> french = {"dim", "lun", "mar", "mer", "jeu", "ven", "sam"};
  for (const std::string name : {"en-weekday", "en-weekday-short", "fr-semaine", "fr-semaine-abrege"}) {
    const std::size_t style = Style(name);
    ForEachDay(1970, 2069, [&](year_month_day date) {
      const int day =
          DayOfWeek(static_cast<int>(date.year()), static_cast<int>(static_cast<unsigned>(date.month())),
                    static_cast<int>(static_cast<unsigned>(date.day())));
      const auto& names = name.starts_with("en") ? english : french;
      ASSERT_EQ(FormatDate(style, date).source.substr(0, 3), names[static_cast<std::size_t>(day)]);
    });
  }
}

TEST(Dates, SpansHoldThePartsOfTheSource) {
  const DatePair words = FormatDate(Style("en-words"), year(2026) / 2 / 27);
  EXPECT_EQ(Part(words, words.day), "twenty-seventh");
  EXPECT_EQ(Part(words, words.month), "February");
  EXPECT_EQ(Part(words, words.year), "two thousand twenty-six");
  const DatePair french = FormatDate(Style("fr-semaine-abrege"), year(2027) / 2 / 1);
  EXPECT_EQ(french.source, "lun. 1er févr. 27");
  EXPECT_EQ(Part(french, french.day), "1er");
  EXPECT_EQ(Part(french, french.month), "févr.");
  EXPECT_EQ(Part(french, french.year), "27");
  for (std::size_t style = 0; style < DateStyles().size(); ++style) {
    ForEachDay(2024, 2026, [&](year_month_day date) {
      const DatePair pair = FormatDate(style, date);
      ByteSpan spans[] = {pair.year, pair.month, pair.day};
      std::sort(std::begin(spans), std::end(spans), [](ByteSpan a, ByteSpan b) { return a.begin < b.begin; });
      std::size_t at = 0;
      for (const ByteSpan& span : spans) {
        ASSERT_LE(at, span.begin) << pair.source;
        ASSERT_LT(span.begin, span.end) << pair.source;
        at = span.end;
      }
      ASSERT_LE(at, pair.source.size());
      if (std::isdigit(static_cast<unsigned char>(Part(pair, pair.day)[0]))) {
        ASSERT_EQ(std::stoi(Part(pair, pair.day)), static_cast<int>(static_cast<unsigned>(date.day())));
      }
    });
  }
}

TEST(Dates, SameSeedSameDates) {
  const auto a = GenerateDates(500, 7, DateSplit::kTrain), b = GenerateDates(500, 7, DateSplit::kTrain);
  const auto other = GenerateDates(500, 8, DateSplit::kTrain);
  ASSERT_EQ(a.size(), 500u);
  int same = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].source, b[i].source);
    same += a[i].source == other[i].source;
  }
  EXPECT_LT(same, 10);
  // Pinned, so that a trained model and its data stay together.
  EXPECT_EQ(a[0].source, "8 mai 2016");
}

TEST(Dates, HeldOutDatesAreNeverInTraining) {
  std::set<std::string> dates, sources;
  for (const DatePair& pair : GenerateDates(100000, 1, DateSplit::kTrain)) {
    dates.insert(pair.target);
    sources.insert(CollapseSpace(pair.source));
  }
  std::set<std::size_t> styles;
  std::set<std::string> held_out;
  for (const DatePair& pair : GenerateDates(5000, 1, DateSplit::kHeldOut)) {
    EXPECT_FALSE(dates.contains(pair.target));
    EXPECT_FALSE(sources.contains(pair.source));
    styles.insert(pair.style);
    held_out.insert(pair.target);
  }
  EXPECT_EQ(styles.size(), DateStyles().size());
  EXPECT_GT(held_out.size(), 2000u);
  int count = 0;
  ForEachDay(kFirstDateYear, kLastDateYear, [&](year_month_day date) { count += IsHeldOut(date); });
  EXPECT_NEAR(count, 3652, 200);
}

TEST(Dates, SomeAreInCapitalsOrSmallLettersWithTheSameSpans) {
  int upper = 0, lower = 0;
  for (const DatePair& pair : GenerateDates(5000, 3, DateSplit::kTrain)) {
    EXPECT_EQ(FindInvalidUtf8(pair.source), std::string::npos);
    const year_month_day date = year(std::stoi(pair.target)) /
                                std::chrono::month(static_cast<unsigned>(std::stoi(pair.target.substr(5)))) /
                                std::chrono::day(static_cast<unsigned>(std::stoi(pair.target.substr(8))));
    const DatePair usual = FormatDate(pair.style, date);
    TrackedText small(pair.source), usual_small(usual.source);
    small.LowerCase("");
    usual_small.LowerCase("");
    EXPECT_EQ(small.text, usual_small.text);
    EXPECT_EQ(pair.source.size(), usual.source.size());
    EXPECT_EQ(pair.month.begin, usual.month.begin);
    if (pair.source == usual.source) continue;
    (pair.source == small.text ? lower : upper) += 1;
  }
  EXPECT_GT(upper, 200);
  EXPECT_GT(lower, 100);
}

TEST(Dates, ImpossibleOnesAreErrors) {
  EXPECT_THROW(FormatDate(0, year(2027) / 2 / 29), Error);
  EXPECT_THROW(FormatDate(0, year(1969) / 12 / 31), Error);
  EXPECT_THROW(FormatDate(0, year(2070) / 1 / 1), Error);
  EXPECT_THROW(FormatDate(DateStyles().size(), year(2027) / 1 / 1), Error);
  EXPECT_THROW(GenerateDates(-1, 0, DateSplit::kTrain), UsageError);
}

}  // namespace
}  // namespace regard::data
