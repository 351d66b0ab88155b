// sacrebleu's tokenisers.
#ifndef REGARD_DATA_BLEU_TOKENIZE_H_
#define REGARD_DATA_BLEU_TOKENIZE_H_

#include <string>
#include <string_view>
#include <vector>

namespace regard::data {

// The tokens of a line. tokenize: "13a" (NIST's mteval-v13a), "intl" (mteval-v14, international), "char"
// (every code point), "none" (split at white space). lowercase: first to lower case, by the root locale's
// rules. Throws regard::UsageError naming an unknown tokeniser.
std::vector<std::string> BleuTokens(std::string_view line, const std::string& tokenize, bool lowercase);

}  // namespace regard::data

#endif  // REGARD_DATA_BLEU_TOKENIZE_H_
