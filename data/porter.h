// Porter's stemmer for English, as the reference package of ROUGE uses it.
#ifndef REGARD_DATA_PORTER_H_
#define REGARD_DATA_PORTER_H_

#include <string>

namespace regard::data {

// The stem of a word of a-z and 0-9 (upper case is not folded; digits count as consonants): Porter 1980, "An
// algorithm for suffix stripping", with the extensions of NLTK's default mode: a few irregular words, "ie" in
// words of four letters (dies, died), "y" turned to "i" only after a consonant, "alli" before "bli", "fulli",
// "logi". Words of at most two letters stay.
std::string PorterStem(std::string word);

}  // namespace regard::data

#endif  // REGARD_DATA_PORTER_H_
