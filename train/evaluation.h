// How good a translator is on sentence pairs.
#ifndef REGARD_TRAIN_EVALUATION_H_
#define REGARD_TRAIN_EVALUATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "data/bleu.h"
#include "data/pairs.h"
#include "data/rouge.h"
#include "train/translation_run.h"

namespace regard::train {

struct EvaluationOptions {
  TranslateOptions translate;
  data::BleuOptions bleu;
  data::RougeOptions rouge;
  int sentence_order = 2;  // k of sentence BLEU
};

struct Evaluation {
  std::int64_t pairs = 0, tokens = 0;  // tokens: predicted ones, kEos included
  double loss = 0;                     // nats per token
  data::BleuScore bleu;                // every pair, its target the one reference
  std::int64_t sources = 0;            // distinct sources
  data::BleuScore bleu_all;            // every distinct source once, all its targets its references
  data::Rouge rouge, rouge_all;        // means over the same two lists
  double sentence_bleu = 0;            // data::SentenceBleu of the target's tokens, mean over pairs, 0..1
  std::int64_t exact = 0;              // pairs whose tokens are all right
  std::vector<std::string> translations;
  data::Truncation truncated_sources, truncated_targets;
};

// BLEU and ROUGE compare texts. Sentence BLEU and exact match compare tokens, so that they ignore what the
// target tokeniser ignores (case, spacing); a target with an unknown token is never exact. Throws
// regard::Error when there is no pair.
Evaluation Evaluate(TranslationRun& run, const std::vector<data::Pair>& pairs,
                    const EvaluationOptions& options);

}  // namespace regard::train

#endif  // REGARD_TRAIN_EVALUATION_H_
