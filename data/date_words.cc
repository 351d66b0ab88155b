#include "data/date_words.h"

#include <fmt/format.h>

#include <array>

namespace regard::data {
namespace {

using Names = std::array<const char*, 12>;

constexpr Names kEnglishMonths = {"January", "February", "March",     "April",   "May",      "June",
                                  "July",    "August",   "September", "October", "November", "December"};
constexpr Names kFrenchMonths = {"janvier", "février", "mars",      "avril",   "mai",      "juin",
                                 "juillet", "août",    "septembre", "octobre", "novembre", "décembre"};
constexpr Names kFrenchShortMonths = {"janv.",  "févr.", "mars",  "avr.", "mai",  "juin",
                                      "juill.", "août",  "sept.", "oct.", "nov.", "déc."};
constexpr std::array<const char*, 7> kEnglishWeekdays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                         "Thursday", "Friday", "Saturday"};
constexpr std::array<const char*, 7> kFrenchWeekdays = {"dimanche", "lundi",    "mardi", "mercredi",
                                                        "jeudi",    "vendredi", "samedi"};

constexpr std::array<const char*, 20> kEnglishOnes = {
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<const char*, 20> kEnglishOrdinals = {
    "zeroth",     "first",     "second",    "third",       "fourth",     "fifth",     "sixth",
    "seventh",    "eighth",    "ninth",     "tenth",       "eleventh",   "twelfth",   "thirteenth",
    "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"};
constexpr std::array<const char*, 10> kEnglishTens = {"",      "",      "twenty",  "thirty", "forty",
                                                      "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr std::array<const char*, 17> kFrenchOnes = {
    "zéro", "un",  "deux", "trois", "quatre", "cinq",     "six",    "sept", "huit",
    "neuf", "dix", "onze", "douze", "treize", "quatorze", "quinze", "seize"};
constexpr std::array<const char*, 7> kFrenchTens = {"",         "dix",       "vingt",   "trente",
                                                    "quarante", "cinquante", "soixante"};

// 0..99.
std::string English(unsigned n) {
  if (n < 20) return kEnglishOnes[n];
  return n % 10 == 0 ? kEnglishTens[n / 10]
                     : fmt::format("{}-{}", kEnglishTens[n / 10], kEnglishOnes[n % 10]);
}

// 0..99. Sixty and eighty count on to nineteen: soixante-dix-neuf, quatre-vingt-dix.
std::string French(unsigned n) {
  if (n < 17) return kFrenchOnes[n];
  if (n < 20) return fmt::format("dix-{}", kFrenchOnes[n - 10]);
  if (n == 80) return "quatre-vingts";
  if (n > 80) return "quatre-vingt-" + French(n - 80);
  const unsigned tens = n >= 60 ? 6 : n / 10, rest = n - 10 * tens;
  if (rest == 0) return kFrenchTens[tens];
  return kFrenchTens[tens] + std::string(rest == 1 || rest == 11 ? " et " : "-") + French(rest);
}

}  // namespace

std::string LongMonth(bool french, unsigned month) {
  return (french ? kFrenchMonths : kEnglishMonths)[month - 1];
}

std::string ShortMonth(bool french, unsigned month) {
  return french ? kFrenchShortMonths[month - 1] : std::string(kEnglishMonths[month - 1]).substr(0, 3);
}

std::string LongWeekday(bool french, unsigned weekday) {
  return (french ? kFrenchWeekdays : kEnglishWeekdays)[weekday];
}

std::string ShortWeekday(bool french, unsigned weekday) {
  return LongWeekday(french, weekday).substr(0, 3) + (french ? "." : "");
}

std::string EnglishOrdinal(unsigned day) {
  const bool teen = day / 10 == 1;
  const unsigned last = teen ? 0 : day % 10;
  return fmt::format("{}{}", day, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

std::string FrenchOrdinal(unsigned day) { return day == 1 ? "1er" : fmt::format("{}", day); }

std::string EnglishDay(unsigned day) {
  if (day < 20) return kEnglishOrdinals[day];
  if (day % 10 == 0) return day == 20 ? "twentieth" : "thirtieth";
  return fmt::format("{}-{}", kEnglishTens[day / 10], kEnglishOrdinals[day % 10]);
}

std::string FrenchDay(unsigned day) { return day == 1 ? "premier" : French(day); }

std::string EnglishYear(int year) {
  const auto rest = static_cast<unsigned>(year % 100);
  if (year < 2000) return fmt::format("nineteen {}", English(rest));
  return rest == 0 ? "two thousand" : fmt::format("two thousand {}", English(rest));
}

std::string EnglishYearInPairs(int year) {
  if (year < 2010 && year > 2000)
    return fmt::format("twenty oh {}", English(static_cast<unsigned>(year % 10)));
  return year <= 2000 ? EnglishYear(year)
                      : fmt::format("twenty {}", English(static_cast<unsigned>(year % 100)));
}

std::string FrenchYear(int year) {
  const auto rest = static_cast<unsigned>(year % 100);
  if (year < 2000) return fmt::format("mille neuf cent {}", French(rest));
  return rest == 0 ? "deux mille" : fmt::format("deux mille {}", French(rest));
}

}  // namespace regard::data
