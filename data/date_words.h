// The words that dates are made of, in English and in French.
#ifndef REGARD_DATA_DATE_WORDS_H_
#define REGARD_DATA_DATE_WORDS_H_

#include <string>

namespace regard::data {

// month 1..12, weekday 0 (Sunday) .. 6, day 1..31, year 1970..2069.
std::string LongMonth(bool french, unsigned month);       // March, mars
std::string ShortMonth(bool french, unsigned month);      // Mar, févr.
std::string LongWeekday(bool french, unsigned weekday);   // Tuesday, mardi
std::string ShortWeekday(bool french, unsigned weekday);  // Tue, mar.
std::string EnglishOrdinal(unsigned day);                 // 1st, 2nd, 3rd, 21st
std::string FrenchOrdinal(unsigned day);                  // 1er, 2, 3
std::string EnglishDay(unsigned day);                     // first, twenty-seventh
std::string FrenchDay(unsigned day);                      // premier, vingt et un
std::string EnglishYear(int year);                        // two thousand twenty-six, nineteen ninety-nine
std::string EnglishYearInPairs(int year);                 // twenty twenty-six, twenty oh one
std::string FrenchYear(int year);  // mille neuf cent quatre-vingts, deux mille vingt et un

}  // namespace regard::data

#endif  // REGARD_DATA_DATE_WORDS_H_
