#include "cli/presets.h"

#include <fmt/format.h>

#include "cli/text.h"
#include "engine/base/error.h"

namespace regard::cli {

const std::vector<Preset>& Presets() {
  static const std::vector<Preset> presets{{"book",
                                            {{"--tokenizer", "word"},
                                             {"--splitting", "book"},
                                             {"--lower-case", "true"},
                                             {"--min-count", "2"},
                                             {"--max-source", "10"},
                                             {"--max-target", "10"},
                                             {"--embed-dim", "32"},
                                             {"--hidden-dim", "32"},
                                             {"--layers", "2"},
                                             {"--dropout", "0.1"},
                                             {"--batch-size", "64"},
                                             {"--epochs", "250"},
                                             {"--learning-rate", "0.005"},
                                             {"--clip", "1"},
                                             {"--valid-fraction", "0"}}},
                                           {"book-transformer",
                                            {{"--model", "transformer"},
                                             {"--tokenizer", "word"},
                                             {"--splitting", "book"},
                                             {"--lower-case", "true"},
                                             {"--min-count", "2"},
                                             {"--max-source", "10"},
                                             {"--max-target", "10"},
                                             {"--hidden-dim", "32"},
                                             {"--ffn-dim", "64"},
                                             {"--heads", "4"},
                                             {"--layers", "2"},
                                             {"--norm", "post"},
                                             {"--embedding-init", "unit"},
                                             {"--dropout", "0.1"},
                                             {"--embedding-dropout", "0.1"},
                                             {"--batch-size", "64"},
                                             {"--epochs", "200"},
                                             {"--learning-rate", "0.005"},
                                             {"--clip", "1"},
                                             {"--valid-fraction", "0"}}},
                                           {"translation",
                                            {{"--model", "transformer"},
                                             {"--tokenizer", "sentencepiece"},
                                             {"--vocab-size", "6000"},
                                             {"--shared-vocab", "true"},
                                             {"--tied", "true"},
                                             {"--hidden-dim", "256"},
                                             {"--ffn-dim", "1024"},
                                             {"--heads", "8"},
                                             {"--layers", "3"},
                                             {"--norm", "pre"},
                                             {"--dropout", "0.2"},
                                             {"--embedding-dropout", "0.2"},
                                             {"--label-smoothing", "0.1"},
                                             {"--batch-size", "128"},
                                             {"--epochs", "16"},
                                             {"--learning-rate", "0.001"},
                                             {"--schedule", "cosine"},
                                             {"--warmup", "1000"},
                                             {"--metric", "bleu"}}},
                                           {"summary",
                                            {{"--model", "transformer"},
                                             {"--tokenizer", "sentencepiece"},
                                             {"--vocab-size", "6000"},
                                             {"--shared-vocab", "true"},
                                             {"--tied", "true"},
                                             {"--max-source", "100"},
                                             {"--max-target", "40"},
                                             {"--hidden-dim", "128"},
                                             {"--ffn-dim", "512"},
                                             {"--heads", "4"},
                                             {"--layers", "3"},
                                             {"--norm", "pre"},
                                             {"--dropout", "0.2"},
                                             {"--embedding-dropout", "0.2"},
                                             {"--label-smoothing", "0.1"},
                                             {"--batch-size", "32"},
                                             {"--epochs", "20"},
                                             {"--learning-rate", "0.001"},
                                             {"--schedule", "cosine"},
                                             {"--warmup", "1000"}}},
                                           {"dates",
                                            {{"--limit", "20000"},
                                             {"--tokenizer", "word"},
                                             {"--split-digits", "true"},
                                             {"--lower-case", "true"},
                                             {"--target-tokenizer", "characters"},
                                             {"--embed-dim", "32"},
                                             {"--hidden-dim", "64"},
                                             {"--layers", "1"},
                                             {"--bidirectional", "true"},
                                             {"--dropout", "0"},
                                             {"--batch-size", "64"},
                                             {"--epochs", "6"},
                                             {"--schedule", "cosine"},
                                             {"--warmup", "50"},
                                             {"--learning-rate", "0.005"},
                                             {"--clip", "1"},
                                             {"--valid-fraction", "0"}}}};
  return presets;
}

const std::vector<Preset>& TextPresets() {
  static const std::vector<Preset> presets{{"shakespeare",
                                            {{"--tokenizer", "characters"},
                                             {"--layers", "4"},
                                             {"--heads", "4"},
                                             {"--embed-dim", "128"},
                                             {"--context", "64"},
                                             {"--dropout", "0"},
                                             {"--no-bias", "true"},
                                             {"--batch-size", "12"},
                                             {"--epochs", "0"},
                                             {"--max-steps", "2000"},
                                             {"--learning-rate", "0.001"},
                                             {"--min-learning-rate", "0.0001"},
                                             {"--schedule", "cosine"},
                                             {"--warmup", "100"},
                                             {"--beta2", "0.99"},
                                             {"--weight-decay", "0.1"},
                                             {"--clip", "1"},
                                             {"--validate-every", "500"},
                                             {"--valid-fraction", "0.1"}}}};
  return presets;
}

const PresetValues& FindPreset(const std::string& name, const std::vector<Preset>& presets) {
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    if (preset.name == name) return preset.values;
    names.push_back(preset.name);
  }
  throw UsageError(fmt::format("no preset {}: expected {}", name, Listed(names)));
}

}  // namespace regard::cli
