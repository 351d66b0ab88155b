// Training a translation model on sentence pairs.
#ifndef REGARD_TRAIN_TRANSLATION_TASK_H_
#define REGARD_TRAIN_TRANSLATION_TASK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/batches.h"
#include "data/pairs.h"
#include "data/tokenizer.h"
#include "models/translation.h"
#include "train/task.h"

namespace regard::train {

using TokenLists = std::vector<std::vector<std::int64_t>>;

// Pairs as token numbers: sources end with kEos, targets start with kBos and end with kEos.
struct EncodedPairs {
  TokenLists sources, targets;
  data::Truncation truncated_sources, truncated_targets;
};

// Encodes and shortens to at most max_source and max_target tokens, kEos counted (kBos not); 0: no limit.
EncodedPairs EncodePairs(const std::vector<data::Pair>& pairs, const data::Tokenizer& source,
                         const data::Tokenizer& target, std::int64_t max_source, std::int64_t max_target);

// The pairs with these indices as one padded batch.
models::PairBatch MakePairBatch(const EncodedPairs& pairs, const std::vector<std::int64_t>& indices);

// Sources [N, S], padded with kPad, and their lengths [N].
struct SourceBatch {
  torch::Tensor source, lengths;
};
SourceBatch MakeSourceBatch(const TokenLists& sources, const std::vector<std::int64_t>& indices);

// Indices into lengths in batches of at most batch_size, shortest first.
std::vector<std::vector<std::int64_t>> SortedBatches(const std::vector<std::int64_t>& lengths,
                                                     std::int64_t batch_size);

// Nats per predicted token over all pairs (no label smoothing), in batches of at most batch_size pairs of
// like length. tokens, if given, receives their number. Gives up and returns NaN when stop() turns true.
double LossPerToken(
    models::TranslationModel& model, const EncodedPairs& pairs, std::int64_t batch_size,
    std::int64_t* tokens = nullptr, const std::function<bool()>& stop = [] { return false; });

struct TranslationTaskOptions {
  std::int64_t batch_size = 64;
  std::int64_t max_tokens = 0;  // as in data::BatchOptions
  bool by_length = true;
  double label_smoothing = 0;
};

class TranslationTask : public TrainingTask {
 public:
  // Further measures of a validation, such as BLEU or exact match; called in evaluation mode.
  using Metric = std::function<Measures(models::TranslationModel&, const std::function<bool()>& stop)>;

  // model has to outlive the task. validation may be empty: then nothing is validated.
  TranslationTask(models::TranslationModel& model, EncodedPairs training, EncodedPairs validation,
                  const TranslationTaskOptions& options, Metric metric = {});

  torch::nn::Module& module() override { return model_; }
  std::int64_t StartEpoch(std::int64_t epoch, std::uint64_t seed) override;
  LossSum Loss(std::int64_t batch, const Share& share, std::uint64_t seed) override;
  // "loss" in nats per token, and what metric adds.
  Measures Validate(const std::function<bool()>& stop) override;

 private:
  models::TranslationModel& model_;
  EncodedPairs training_, validation_;
  TranslationTaskOptions options_;
  Metric metric_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::vector<std::int64_t>> batches_;
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_TRANSLATION_TASK_H_
