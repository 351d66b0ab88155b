#include "train/evaluation.h"

#include <algorithm>
#include <map>

#include "engine/base/error.h"

namespace regard::train {

Evaluation Evaluate(TranslationRun& run, const std::vector<data::Pair>& pairs,
                    const EvaluationOptions& options) {
  if (pairs.empty()) throw Error("there is no pair to evaluate on");
  run.model().eval();
  Evaluation result;
  result.pairs = static_cast<std::int64_t>(pairs.size());

  const EncodedPairs encoded = run.Encode(pairs);
  result.truncated_sources = encoded.truncated_sources;
  result.truncated_targets = encoded.truncated_targets;
  const std::int64_t batch_size = std::max<std::int64_t>(options.translate.batch_size, 1);
  result.loss = LossPerToken(run.model(), encoded, batch_size, &result.tokens);

  std::vector<std::string> lines;
  for (const data::Pair& pair : pairs) lines.push_back(pair.source);
  const Translations translations = run.Translate(lines, options.translate);

  std::vector<std::vector<std::string>> references;
  std::map<std::string, std::size_t> seen;  // source -> its place in the lists with all references
  std::vector<std::string> distinct;
  std::vector<std::vector<std::string>> all_references;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Translation& translation = translations.lines[i];
    result.translations.push_back(translation.text);
    references.push_back({pairs[i].target});

    std::vector<std::int64_t> ids;
    std::vector<std::string> pieces;
    for (const data::Piece& piece : run.target().Pieces(pairs[i].target)) {
      ids.push_back(piece.id);
      pieces.push_back(piece.text);
    }
    const bool known = std::find(ids.begin(), ids.end(), models::kUnk) == ids.end();
    if (known && translation.ended && ids == translation.tokens) ++result.exact;
    result.sentence_bleu +=
        data::SentenceBleu(run.target().PieceTexts(translation.tokens), pieces, options.sentence_order);

    const auto [place, fresh] = seen.try_emplace(pairs[i].source, distinct.size());
    if (fresh) {
      distinct.push_back(translation.text);
      all_references.emplace_back();
    }
    std::vector<std::string>& known_references = all_references[place->second];
    if (std::find(known_references.begin(), known_references.end(), pairs[i].target) ==
        known_references.end()) {
      known_references.push_back(pairs[i].target);
    }
  }
  result.sentence_bleu /= static_cast<double>(pairs.size());
  result.bleu = data::CorpusBleu(result.translations, references, options.bleu);
  result.sources = static_cast<std::int64_t>(distinct.size());
  result.bleu_all = data::CorpusBleu(distinct, all_references, options.bleu);
  result.rouge = data::CorpusRouge(result.translations, references, options.rouge);
  result.rouge_all = data::CorpusRouge(distinct, all_references, options.rouge);
  return result;
}

}  // namespace regard::train
