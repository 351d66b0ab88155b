// What the training loop has to know of a task, whatever is being trained.
#ifndef REGARD_TRAIN_TASK_H_
#define REGARD_TRAIN_TASK_H_

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/translation.h"

namespace regard::train {

using models::LossSum;

// Named results of a validation: "loss" (nats per token) and whatever else the task measures ("bleu",
// "exact").
using Measures = std::map<std::string, double>;

// Every count-th row of a batch, from number `index` on.
struct Share {
  std::int64_t index = 0, count = 1;

  template <typename Row>
  std::vector<Row> Of(const std::vector<Row>& rows) const {
    if (count == 1) return rows;
    std::vector<Row> own;
    for (auto n = static_cast<std::size_t>(index); n < rows.size(); n += static_cast<std::size_t>(count)) {
      own.push_back(rows[n]);
    }
    return own;
  }
};

class TrainingTask {
 public:
  virtual ~TrainingTask() = default;
  virtual torch::nn::Module& module() = 0;
  // Arranges the batches of an epoch (counted from 0) and returns their number. They have to be a pure
  // function of epoch and seed, so that a resumed run sees the same ones.
  virtual std::int64_t StartEpoch(std::int64_t epoch, std::uint64_t seed) = 0;
  // Loss of a share of one batch of the epoch, summed over its tokens; no tokens where the share has no row.
  // All randomness has to come from seed, or, where the share is the whole batch, from torch's default
  // generator, which the loop sets to it. Several threads may call it at once.
  virtual LossSum Loss(std::int64_t batch, const Share& share, std::uint64_t seed) = 0;
  // Called in evaluation mode without gradients. Returns nothing when there is nothing to validate on, or
  // when it gave up because stop() turned true.
  virtual Measures Validate(const std::function<bool()>& stop) = 0;
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_TASK_H_
