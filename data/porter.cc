#include "data/porter.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace regard::data {
namespace {

// Whether each letter is a consonant: all but a, e, i, o, u, and but a y after a consonant.
std::vector<bool> Consonants(std::string_view word) {
  std::vector<bool> flags;
  for (const char c : word) {
    const bool vowel =
        c == 'y' ? !flags.empty() && flags.back() : std::string_view("aeiou").find(c) != word.npos;
    flags.push_back(!vowel);
  }
  return flags;
}

// m of [C](VC){m}[V], C and V runs of consonants and vowels.
int Measure(std::string_view stem) {
  const std::vector<bool> consonant = Consonants(stem);
  int m = 0;
  for (std::size_t i = 1; i < stem.size(); ++i) m += !consonant[i - 1] && consonant[i];
  return m;
}

bool HasVowel(std::string_view stem) {
  for (const bool consonant : Consonants(stem))
    if (!consonant) return true;
  return false;
}

bool EndsInConsonant(std::string_view word) { return !word.empty() && Consonants(word).back(); }

bool EndsInDoubleConsonant(std::string_view word) {
  return word.size() >= 2 && word.back() == word[word.size() - 2] && EndsInConsonant(word);
}

// Consonant, vowel, consonant other than w, x and y; or a word of a vowel and a consonant.
bool EndsShort(std::string_view word) {
  const std::vector<bool> consonant = Consonants(word);
  const std::size_t n = word.size();
  if (n == 2) return !consonant[0] && consonant[1];
  return n >= 3 && consonant[n - 3] && !consonant[n - 2] && consonant[n - 1] &&
         std::string_view("wxy").find(word.back()) == word.npos;
}

struct Rule {
  std::string_view suffix, replacement;
};

// Replaces the first suffix that fits, when what stands before it has a measure above `above`. A rule that
// fits ends the search also when its condition does not hold.
template <std::size_t n>
std::string Apply(const std::string& word, const std::array<Rule, n>& rules, int above) {
  for (const Rule& rule : rules) {
    if (!word.ends_with(rule.suffix)) continue;
    std::string stem = word.substr(0, word.size() - rule.suffix.size());
    // Adoption loses its ion, onion does not.
    const bool holds = rule.suffix != "ion" || stem.ends_with('s') || stem.ends_with('t');
    return holds && Measure(stem) > above ? stem.append(rule.replacement) : word;
  }
  return word;
}

// Plurals.
std::string Step1a(const std::string& word) {
  if (word.size() == 4 && word.ends_with("ies")) return word.substr(0, 3);
  if (word.ends_with("sses") || word.ends_with("ies")) return word.substr(0, word.size() - 2);
  if (word.ends_with('s') && !word.ends_with("ss")) return word.substr(0, word.size() - 1);
  return word;
}

// -ed and -ing.
std::string Step1b(const std::string& word) {
  if (word.ends_with("ied")) return word.substr(0, word.size() - (word.size() == 4 ? 1 : 2));
  if (word.ends_with("eed")) {
    return Measure(word.substr(0, word.size() - 3)) > 0 ? word.substr(0, word.size() - 1) : word;
  }
  const std::size_t suffix = word.ends_with("ed") ? 2 : word.ends_with("ing") ? 3 : 0;
  std::string stem = word.substr(0, word.size() - suffix);
  if (suffix == 0 || !HasVowel(stem)) return word;
  if (stem.ends_with("at") || stem.ends_with("bl") || stem.ends_with("iz")) return stem + 'e';
  if (EndsInDoubleConsonant(stem)) {
    if (std::string_view("lsz").find(stem.back()) == std::string_view::npos) stem.pop_back();
    return stem;
  }
  return Measure(stem) == 1 && EndsShort(stem) ? stem + 'e' : stem;
}

std::string Step1c(std::string word) {
  const std::string_view stem = std::string_view(word).substr(0, word.size() - 1);
  if (word.ends_with('y') && stem.size() > 1 && EndsInConsonant(stem)) word.back() = 'i';
  return word;
}

constexpr std::array<Rule, 20> kStep2 = {{
    {"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},     {"ousli", "ous"},
    {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},  {"iveness", "ive"},
    {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"}, {"biliti", "ble"},
}};

std::string Step2(const std::string& word) {
  const std::string_view text = word;
  // Radically to radical, which may have a suffix of this step again.
  if (text.ends_with("alli") && Measure(text.substr(0, text.size() - 4)) > 0) {
    return Step2(word.substr(0, word.size() - 2));
  }
  // The l counts to the stem, so that geology is like philology.
  if (text.ends_with("logi")) {
    return Measure(text.substr(0, text.size() - 3)) > 0 ? word.substr(0, word.size() - 1) : word;
  }
  if (text.ends_with("fulli")) {
    return Measure(text.substr(0, text.size() - 5)) > 0 ? word.substr(0, word.size() - 2) : word;
  }
  return Apply(word, kStep2, 0);
}

constexpr std::array<Rule, 7> kStep3 = {{
    {"icate", "ic"},
    {"ative", ""},
    {"alize", "al"},
    {"iciti", "ic"},
    {"ical", "ic"},
    {"ful", ""},
    {"ness", ""},
}};

constexpr std::array<Rule, 19> kStep4 = {{
    {"al", ""},  {"ance", ""},  {"ence", ""}, {"er", ""},  {"ic", ""},  {"able", ""}, {"ible", ""},
    {"ant", ""}, {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ion", ""}, {"ou", ""},   {"ism", ""},
    {"ate", ""}, {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""},
}};

// A final e, and one of two final l.
std::string Step5(std::string word) {
  if (word.ends_with('e')) {
    const std::string stem = word.substr(0, word.size() - 1);
    const int m = Measure(stem);
    if (m > 1 || (m == 1 && !EndsShort(stem))) word = stem;
  }
  if (word.ends_with("ll") && Measure(word.substr(0, word.size() - 1)) > 1) word.pop_back();
  return word;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kIrregular = {{
    {"sky", "sky"},
    {"skies", "sky"},
    {"dying", "die"},
    {"lying", "lie"},
    {"tying", "tie"},
    {"news", "news"},
    {"innings", "inning"},
    {"inning", "inning"},
    {"outings", "outing"},
    {"outing", "outing"},
    {"cannings", "canning"},
    {"canning", "canning"},
    {"howe", "howe"},
    {"proceed", "proceed"},
    {"exceed", "exceed"},
    {"succeed", "succeed"},
}};

}  // namespace

std::string PorterStem(std::string word) {
  for (const auto& [form, stem] : kIrregular)
    if (word == form) return std::string(stem);
  if (word.size() <= 2) return word;
  word = Step2(Step1c(Step1b(Step1a(word))));
  return Step5(Apply(Apply(word, kStep3, 0), kStep4, 1));
}

}  // namespace regard::data
