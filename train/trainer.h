// The training loop.
#ifndef REGARD_TRAIN_TRAINER_H_
#define REGARD_TRAIN_TRAINER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "train/optimizer.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/schedule.h"
#include "train/task.h"

namespace regard::train {

// What to do with a gradient that is NaN or infinite. Weights are never touched by one.
enum class NonFinite { kStop, kSkip };

struct TrainOptions {
  // Limits; 0: none. At least one, or patience, has to be set.
  std::int64_t epochs = 10;
  std::int64_t max_steps = 0;
  double max_minutes = 0;  // of training and validation, over all resumed parts

  Schedule schedule;
  AdamOptions adam;
  double clip = 1;                // largest gradient norm; 0: no clipping
  std::int64_t accumulation = 1;  // batches a step; equal to one batch as large as all of them
  // A batch is computed in so many shares at once, each on one thread, and their gradients are summed in
  // order: the weights do not depend on the number of threads then. 1: each operation uses all threads.
  // Dropout differs between numbers of shares. A task whose randomness is not from its seed has to have 1.
  std::int64_t shares = 1;
  NonFinite non_finite = NonFinite::kStop;
  std::uint64_t seed = 0;

  std::int64_t validate_every = 0;  // steps; 0: after each epoch
  std::string best = "loss";        // the measure by which the best weights are kept
  bool maximize = false;            // it is better when larger
  std::int64_t patience = 0;        // stop after so many validations without a better one; 0: never

  std::int64_t log_every = 10;     // steps a line in metrics.jsonl
  double checkpoint_seconds = 10;  // between checkpoints on disk; one more is made at the end
};

void to_json(nlohmann::json& json, const TrainOptions& options);
// Throws regard::Error naming an entry that is missing or of the wrong type.
void from_json(const nlohmann::json& json, TrainOptions& options);

enum class StopReason { kNone, kEpochs, kSteps, kMinutes, kPatience, kInterrupted };

struct TrainResult {
  StopReason reason = StopReason::kNone;
  std::int64_t steps = 0, epochs = 0;  // taken, and begun
  std::int64_t tokens = 0;
  double seconds = 0;           // of steps and validations
  double step_seconds = 0;      // of steps alone
  Measures validation;          // the last one
  std::int64_t best_step = -1;  // -1: never validated
  double best = 0;
  std::int64_t skipped = 0;  // steps left out for a gradient that was not finite
};

// Trains a task. The same options, task and machine give the same weights, whether or not the training was
// interrupted and resumed in between.
class Trainer {
 public:
  // run may be null: nothing is written. progress may be null: nothing is shown. All have to outlive the
  // trainer. Throws regard::UsageError for options that do not fit together.
  Trainer(TrainingTask& task, const TrainOptions& options, RunDirectory* run = nullptr,
          Progress* progress = nullptr);

  // Goes on where run's checkpoint ends. Limits and patience may differ from those of the run; throws
  // regard::Error when the checkpoint is missing, cut short or does not fit the task.
  void Resume();

  // Trains until a limit, or until interrupted() turns true, then saves. Unless interrupted, the module then
  // holds the best weights. Throws regard::Error when the loss or (with NonFinite::kStop) a gradient is not
  // finite, or when something cannot be written; the run then still holds its last checkpoint.
  TrainResult Run(const std::function<bool()>& interrupted = [] { return false; });

 private:
  // Everything that a checkpoint has to hold besides tensors.
  struct State {
    std::int64_t step = 0, epoch = 0, batch = 0;  // the next ones
    std::int64_t steps_per_epoch = 0, batches = 0;
    std::int64_t tokens = 0, skipped = 0, skipped_in_a_row = 0;
    double seconds = 0, step_seconds = 0;
    std::int64_t validated_step = 0, best_step = -1, stale = 0;
    double best = 0;
    Measures validation;
    // since the last line in metrics.jsonl
    double log_nats = 0, log_seconds = 0;
    std::int64_t log_tokens = 0;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE(State, step, epoch, batch, steps_per_epoch, batches, tokens, skipped,
                                   skipped_in_a_row, seconds, step_seconds, validated_step, best_step, stale,
                                   best, validation, log_nats, log_seconds, log_tokens)
  };

  StopReason Reason() const;
  std::int64_t TotalSteps() const;
  bool ValidationDue(StopReason reason) const;
  void StartEpoch();
  void Step();
  double Accumulate(std::int64_t batches, std::int64_t* tokens);
  LossSum AddInShares(std::int64_t batch, std::uint64_t seed);
  void LogStep(double rate, double grad_norm, double nats, std::int64_t tokens, double seconds);
  void Validate(const std::function<bool()>& stop);
  void Save();
  void ShowProgress();

  TrainingTask& task_;
  TrainOptions options_;
  RunDirectory* run_;
  Progress* progress_;
  Adam adam_;
  State state_;
  std::int64_t batches_ = -1;     // of the current epoch
  std::int64_t saved_step_ = -1;  // of the checkpoint on disk
  double shown_loss_ = 0, shown_speed_ = 0;
  NamedTensors best_weights_;  // copies; empty: those on disk are the best, or there are none
  bool best_unsaved_ = false;
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_TRAINER_H_
