// A trained translator: its run directory, tokenisers and model, and the translation of lines of text.
#ifndef REGARD_TRAIN_TRANSLATION_RUN_H_
#define REGARD_TRAIN_TRANSLATION_RUN_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/batches.h"
#include "data/pairs.h"
#include "data/tokenizer.h"
#include "models/translation.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/translation_task.h"

namespace regard::train {

struct TranslateOptions {
  models::DecodeOptions decode;  // with decode.attention, translations carry their weights
  std::int64_t batch_size = 64;
  Progress* progress = nullptr;
};

struct Translation {
  std::string text;
  bool ended = false;                // not cut at the length limit
  double log_prob = 0;               // nats
  std::vector<std::int64_t> tokens;  // without kBos and kEos
  // What the axes of the picture show, the end marks included, and the weights [T, S] between them, with
  // decode.heads [T, H, S]; the tensor is undefined unless asked for.
  std::vector<std::string> source_pieces, target_pieces;
  torch::Tensor attention;
};

struct Translations {
  std::vector<Translation> lines;  // one for each line given, in their order
  data::Truncation truncated;      // sources longer than max_source
};

struct TranslationSetup {
  nlohmann::json model;  // for models::MakeTranslationModel
  std::shared_ptr<data::Tokenizer> source, target;
  std::int64_t max_source = 0, max_target = 0;  // tokens, kEos counted; 0: no limit
  nlohmann::json training;                      // what the command wants to find again, kept under "training"
  std::uint64_t seed = 0;                       // of the fresh weights
};

class TranslationRun {
 public:
  // Makes the run directory with fresh weights. Errors as RunDirectory::Create and MakeTranslationModel.
  static TranslationRun Create(const std::string& path, const TranslationSetup& setup, bool force);

  // Loads a run with its best weights, in evaluation mode. Throws regard::Error as RunDirectory::Open, and
  // when a vocabulary does not fit the weights.
  static TranslationRun Load(const std::string& path);

  RunDirectory& directory() { return directory_; }
  models::TranslationModel& model() { return *model_; }
  const data::Tokenizer& source() const { return *source_; }
  const data::Tokenizer& target() const { return *target_; }
  std::int64_t max_source() const { return max_source_; }
  std::int64_t max_target() const { return max_target_; }
  const nlohmann::json& training() const { return directory_.config().at("training"); }

  EncodedPairs Encode(const std::vector<data::Pair>& pairs) const;

  // n lines in, n translations out; a blank line gives an empty one. A line's translation does not depend on
  // the others.
  Translations Translate(const std::vector<std::string>& lines, const TranslateOptions& options);

 private:
  explicit TranslationRun(RunDirectory directory) : directory_(std::move(directory)) {}

  RunDirectory directory_;
  std::shared_ptr<models::TranslationModel> model_;
  std::shared_ptr<data::Tokenizer> source_, target_;
  std::int64_t max_source_ = 0, max_target_ = 0;
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_TRANSLATION_RUN_H_
