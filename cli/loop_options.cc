#include "cli/loop_options.h"

#include <fmt/format.h>

#include "cli/options.h"
#include "cli/text.h"
#include "engine/base/error.h"

namespace regard::cli {

void AddLoopOptions(CLI::App& command, LoopOptions& o) {
  const std::string group = "Training";
  AddInteger(command, "--epochs", "N", o.epochs, 0, "Times through the data; 0: no limit")->group(group);
  AddInteger(command, "--max-steps", "N", o.max_steps, 0, "Steps at most; 0: no limit")->group(group);
  AddReal(command, "--max-minutes", "X", o.max_minutes, {.min = 0}, "Minutes at most; 0: no limit")
      ->group(group);
  AddInteger(command, "--accumulate", "N", o.accumulate, 1, "Batches a step")->group(group);
  AddInteger(command, "--shares", "N", o.shares, 1,
             "Parts of a batch that are computed at once, a thread each; 1: each operation uses all threads")
      ->group(group);
  AddReal(command, "--learning-rate", "X", o.learning_rate, {.min = 0}, "Adam's rate")->group(group);
  AddReal(command, "--min-learning-rate", "X", o.least_rate, {.min = 0}, "Where the cosine schedule ends")
      ->group(group);
  AddChoice(command, "--schedule", o.schedule, {"constant", "cosine", "invsqrt"},
            "How the rate changes after the warm-up")
      ->group(group);
  AddInteger(command, "--warmup", "N", o.warmup, 0, "Steps in which the rate grows from 0")->group(group);
  AddReal(command, "--beta2", "X", o.beta2, {.min = 0, .max = 1, .below = true},
          "How slowly Adam forgets the size of gradients")
      ->group(group);
  AddReal(command, "--weight-decay", "X", o.weight_decay, {.min = 0}, "AdamW's decay")->group(group);
  AddReal(command, "--clip", "X", o.clip, {.min = 0}, "Largest norm of the gradient; 0: any")->group(group);
  AddInteger(command, "--validate-every", "N", o.validate_every, 0,
             "Steps between validations; 0: after each epoch")
      ->group(group);
  AddInteger(command, "--patience", "N", o.patience, 0,
             "Stop after so many validations without a better one; "
             "0: never")
      ->group(group);
  AddInteger(command, "--seed", "N", o.seed, 0, "Of weights, order and dropout")->group(group);
}

void AddRunOptions(CLI::App& command, RunOptions& o, const std::vector<Preset>& presets) {
  AddText(command, "-o,--output", "RUN", o.run, "Folder for the trained model; needed");
  std::vector<std::string> names;
  for (const Preset& preset : presets) names.emplace_back(preset.name);
  AddChoice(command, "--preset", o.preset, names,
            "A setting that is known to do well; options given beside it hold");
  AddFlag(command, "--resume", o.resume, "Go on with the interrupted training of RUN, bit for bit");
  AddFlag(command, "--force", o.force, "Replace the run that is there");
}

void CheckRunOptions(const RunOptions& o) {
  if (o.run.empty()) throw UsageError("-o RUN is missing: the folder that the trained model goes to");
  if (o.resume && o.force) throw UsageError("--resume and --force exclude each other");
}

void CheckHeads(const std::string& option, std::int64_t width, std::int64_t heads) {
  if (width % heads == 0) return;
  throw UsageError(fmt::format("{} {}: expected a multiple of the {}", option, width, Count(heads, "head")));
}

void EndIfInterrupted(const train::TrainResult& result, const std::string& command, const std::string& run,
                      const Messages& messages) {
  if (result.reason != train::StopReason::kInterrupted) return;
  messages.Say("Saved. To go on: {} {} -o {} --resume", Program(), command, run);
  throw Error("interrupted");
}

train::TrainOptions MakeTrainOptions(const LoopOptions& o) {
  if (o.least_rate > o.learning_rate) {
    throw UsageError(fmt::format("--min-learning-rate {}: expected at most the --learning-rate of {}",
                                 o.least_rate, o.learning_rate));
  }
  train::TrainOptions train;
  train.epochs = o.epochs;
  train.max_steps = o.max_steps;
  train.max_minutes = o.max_minutes;
  train.schedule.kind = train::ParseScheduleKind(o.schedule);
  train.schedule.rate = o.learning_rate;
  train.schedule.warmup_steps = o.warmup;
  train.schedule.floor = o.learning_rate > 0 ? o.least_rate / o.learning_rate : 0;
  train.adam.beta2 = o.beta2;
  train.adam.weight_decay = o.weight_decay;
  train.clip = o.clip;
  train.accumulation = o.accumulate;
  train.shares = o.shares;
  train.seed = static_cast<std::uint64_t>(o.seed);
  train.validate_every = o.validate_every;
  train.patience = o.patience;
  return train;
}

}  // namespace regard::cli
