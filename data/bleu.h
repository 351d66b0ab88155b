// BLEU: of a corpus as sacrebleu has it, and of a sentence to k-grams as d2l.ai has it.
#ifndef REGARD_DATA_BLEU_H_
#define REGARD_DATA_BLEU_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regard::data {

struct BleuOptions {
  std::string tokenize = "13a";  // "13a", "none", "char", "intl"
  bool lowercase = false;
  std::string smooth = "exp";  // "none", "exp", "floor", "add-k"
  double smooth_value = -1;    // of floor (default .1) and add-k (default 1); negative: the default
  bool effective_order = false;
  int max_order = 4;
};

struct BleuScore {
  double score = 0;                // 0..100
  std::vector<double> precisions;  // percent, one for each order
  std::vector<std::int64_t> correct, total;
  double brevity_penalty = 0;
  std::int64_t hypothesis_length = 0, reference_length = 0;
  // sacrebleu's layout, with regard as the implementation:
  // "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:regard-0.1.0".
  std::string signature;
  // sacrebleu's line: "BLEU = 42.73 75.0/66.7/50.0/... (BP = 1.000 ratio = 1.000 hyp_len = 4 ref_len = 4)".
  std::string Line() const;
};

// Papineni et al. 2002 with sacrebleu 2.6's tokenisers, smoothing (Chen and Cherry 2014) and length rule (the
// closest reference, the shorter of two equally close). references[i] are those of hypotheses[i], at least
// one each. Throws regard::UsageError naming sizes that do not match or an unknown option.
BleuScore CorpusBleu(const std::vector<std::string>& hypotheses,
                     const std::vector<std::vector<std::string>>& references,
                     const BleuOptions& options = {});

// BLEU to k-grams of one tokenised sentence, d2l.ai's: exp(min(0, 1 - n_ref / n_hyp)) * prod_{n=1..k}
// p_n^(0.5^n), k no more than the hypothesis' length. An empty hypothesis has 0. k < 1 is a
// regard::UsageError.
double SentenceBleu(const std::vector<std::string>& hypothesis, const std::vector<std::string>& reference,
                    int k);
// The same for tokens separated by spaces.
double SentenceBleu(std::string_view hypothesis, std::string_view reference, int k);

// The tokens of a line, by the name of a tokeniser ("13a", ...), separated by single spaces.
std::string BleuTokenize(std::string_view line, const std::string& tokenize);

}  // namespace regard::data

#endif  // REGARD_DATA_BLEU_H_
