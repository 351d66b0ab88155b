// ROUGE-1, ROUGE-2 and ROUGE-L of summaries, equal to the rouge-score package's.
#ifndef REGARD_DATA_ROUGE_H_
#define REGARD_DATA_ROUGE_H_

#include <string>
#include <string_view>
#include <vector>

namespace regard::data {

struct RougeOptions {
  bool stem = false;  // compare Porter stems of tokens longer than three letters
};

// Shares, 0..1. f: the harmonic mean, 0 where precision and recall are.
struct RougeScore {
  double precision = 0, recall = 0, f = 0;
};

struct Rouge {
  RougeScore rouge1, rouge2;  // common n-grams by those of the hypothesis, of the reference
  RougeScore rougel;          // longest common subsequence of the whole texts by their lengths
};

// Lower case, then the runs of a-z and 0-9; everything else only separates.
std::vector<std::string> RougeTokens(std::string_view text, const RougeOptions& options = {});

// Lin 2004. Of several references, for each kind of ROUGE, the one with the largest f (the first of equal
// ones). A side without tokens has 0. Throws regard::UsageError when there is no reference.
Rouge TextRouge(std::string_view hypothesis, const std::vector<std::string>& references,
                const RougeOptions& options = {});

// The plain mean over the hypotheses of every number; references[i] are those of hypotheses[i]. Throws
// regard::UsageError naming sizes that do not match.
Rouge CorpusRouge(const std::vector<std::string>& hypotheses,
                  const std::vector<std::vector<std::string>>& references, const RougeOptions& options = {});

}  // namespace regard::data

#endif  // REGARD_DATA_ROUGE_H_
