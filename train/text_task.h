// Training a language model on one text.
#ifndef REGARD_TRAIN_TEXT_TASK_H_
#define REGARD_TRAIN_TEXT_TASK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "data/corpus.h"
#include "models/language.h"
#include "train/task.h"

namespace regard::train {

// Windows of one length, as a batch.
models::TokenBatch MakeTokenBatch(const std::vector<std::int64_t>& ids,
                                  const std::vector<data::Window>& windows);

struct TextLoss {
  double nats = 0;          // summed
  std::int64_t tokens = 0;  // predicted: all but the first
};

// Loss of every token but the first, in windows of the model's context one after the other. Gives up when
// stop() turns true; nats is NaN then.
TextLoss MeasureText(
    models::LanguageModel& model, const std::vector<std::int64_t>& ids,
    const std::function<bool()>& stop = [] { return false; });

struct TextTaskOptions {
  std::int64_t batch_size = 12;  // windows
  std::int64_t context = 0;      // tokens of a window; 0: the model's
};

// An epoch is as many batches as it takes to draw as many tokens as the text has, at random places.
class TextTask : public TrainingTask {
 public:
  // model has to outlive the task. Fewer than two tokens to validate on: then nothing is validated. Throws
  // regard::Error when the text is not longer than a window.
  TextTask(models::LanguageModel& model, std::vector<std::int64_t> training,
           std::vector<std::int64_t> validation, const TextTaskOptions& options);

  torch::nn::Module& module() override { return model_; }
  std::int64_t StartEpoch(std::int64_t epoch, std::uint64_t seed) override;
  LossSum Loss(std::int64_t batch, const Share& share, std::uint64_t seed) override;
  // "loss" in nats per token, over the whole validation text.
  Measures Validate(const std::function<bool()>& stop) override;

 private:
  models::LanguageModel& model_;
  std::vector<std::int64_t> training_, validation_;
  data::WindowOptions windows_;
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_TEXT_TASK_H_
