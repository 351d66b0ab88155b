// The options of the training loop, the same for every kind of model.
#ifndef REGARD_CLI_LOOP_OPTIONS_H_
#define REGARD_CLI_LOOP_OPTIONS_H_

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/presets.h"
#include "train/trainer.h"

namespace regard::cli {

// As typed; the values when they are added are the defaults.
struct LoopOptions {
  std::int64_t epochs = 10, max_steps = 0, patience = 0, validate_every = 0;
  double max_minutes = 0;
  std::int64_t accumulate = 1, shares = 1, warmup = 0, seed = 0;
  double learning_rate = 1e-3, least_rate = 0, clip = 1, weight_decay = 0, beta2 = 0.999;
  std::string schedule = "constant";
};

// Adds them in the group "Training".
void AddLoopOptions(CLI::App& command, LoopOptions& options);

// Where a training goes, and what it starts from.
struct RunOptions {
  std::string run, preset;
  bool resume = false, force = false;
};
void AddRunOptions(CLI::App& command, RunOptions& options, const std::vector<Preset>& presets);

// Throws regard::UsageError where no folder for the trained model is named, or --resume and --force exclude
// each other.
void CheckRunOptions(const RunOptions& options);

// Throws regard::UsageError where heads do not divide the width that `option` gives.
void CheckHeads(const std::string& option, std::int64_t width, std::int64_t heads);

// Where the training was interrupted, says how to go on (`command`: "train text") and throws regard::Error.
void EndIfInterrupted(const train::TrainResult& result, const std::string& command, const std::string& run,
                      const Messages& messages);

// What they mean. Throws regard::UsageError where they do not fit together.
train::TrainOptions MakeTrainOptions(const LoopOptions& options);

}  // namespace regard::cli

#endif  // REGARD_CLI_LOOP_OPTIONS_H_
