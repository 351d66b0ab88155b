// Training a translator from a description of it: what `train pairs` and `quickstart` share.
#ifndef REGARD_CLI_TRAINING_H_
#define REGARD_CLI_TRAINING_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/options.h"
#include "data/pairs.h"
#include "data/tokenizer.h"
#include "train/trainer.h"
#include "train/translation_run.h"
#include "train/translation_task.h"

namespace regard::cli {

// The name under which the generated dates are trained on, in place of a file.
inline constexpr char kDates[] = "dates";

struct PairSource {
  std::string data;         // anything data::ReadPairs takes, or kDates
  std::string target_file;  // with `data` the file of sources; empty: data holds both sides
  std::int64_t limit = 0;   // pairs; 0: all (dates: as many as the preset has)
  bool reverse = false, replace_invalid = false;
  std::string valid;            // pairs to validate on; empty: a part of data
  double valid_fraction = .02;  // that part, taken by source: none is on both sides
};

struct TrainingSpec {
  PairSource pairs;
  data::TokenizerOptions source_tokenizer, target_tokenizer;
  bool shared_vocabulary = false;  // the source's tokeniser, of the texts of both sides, is also the target's
  nlohmann::json model;            // for models::MakeTranslationModel, without the vocabulary sizes
  std::int64_t max_source = 0, max_target = 0;
  train::TranslationTaskOptions task;
  train::TrainOptions train;
  std::string metric = "loss";  // what the best weights are kept by: "loss", "bleu" or "exact"
  std::string run;              // folder
  bool force = false, resume = false;
  nlohmann::json arguments;  // kept in the run, given back by ResumedArguments
};

// The spec that `train pairs DATA -o RUN` with these options stands for (in train.cc).
TrainingSpec SpecOf(const std::string& data, const std::string& run, const PresetValues& values);

// Dates that no training has seen, as pairs.
std::vector<data::Pair> HeldOutDates(std::int64_t count, std::uint64_t seed);

// Trains, saying on `messages` what is read, made and reached. Ctrl-C saves and returns with kInterrupted.
train::TrainResult TrainPairs(const TrainingSpec& spec, const Messages& messages);

// What TrainPairs was given as `arguments` when it made this run. Throws regard::Error as
// TranslationRun::Load.
nlohmann::json ResumedArguments(const std::string& run);

}  // namespace regard::cli

#endif  // REGARD_CLI_TRAINING_H_
