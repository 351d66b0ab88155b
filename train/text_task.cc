#include "train/text_task.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace regard::train {
namespace {

constexpr std::int64_t kMeasuredTokens = 4096;  // of a batch that is only measured

}  // namespace

models::TokenBatch MakeTokenBatch(const std::vector<std::int64_t>& ids,
                                  const std::vector<data::Window>& windows) {
  const auto count = static_cast<std::int64_t>(windows.size()), length = windows.front().length;
  models::TokenBatch batch{torch::empty({count, length}, torch::kLong),
                           torch::empty({count, length}, torch::kLong)};
  std::int64_t* inputs = batch.inputs.data_ptr<std::int64_t>();
  std::int64_t* targets = batch.targets.data_ptr<std::int64_t>();
  for (const data::Window& window : windows) {
    inputs = std::copy_n(ids.begin() + window.begin, length, inputs);
    targets = std::copy_n(ids.begin() + window.begin + 1, length, targets);
  }
  return batch;
}

TextLoss MeasureText(models::LanguageModel& model, const std::vector<std::int64_t>& ids,
                     const std::function<bool()>& stop) {
  torch::NoGradGuard no_grad;
  const auto windows = data::CoverWindows(static_cast<std::int64_t>(ids.size()), model.context());
  const std::int64_t batch_size = std::max<std::int64_t>(kMeasuredTokens / model.context(), 1);
  TextLoss result;
  std::vector<data::Window> batch;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    batch.push_back(windows[i]);
    const bool last = i + 1 == windows.size() || windows[i + 1].length != windows[i].length;
    if (!last && static_cast<std::int64_t>(batch.size()) < batch_size) continue;
    if (stop()) return {std::numeric_limits<double>::quiet_NaN(), result.tokens};
    const LossSum loss = model.Loss(MakeTokenBatch(ids, batch), /*seed=*/0);
    result.nats += loss.nats.item<double>();
    result.tokens += loss.tokens;
    batch.clear();
  }
  return result;
}

TextTask::TextTask(models::LanguageModel& model, std::vector<std::int64_t> training,
                   std::vector<std::int64_t> validation, const TextTaskOptions& options)
    : model_(model),
      training_(std::move(training)),
      validation_(std::move(validation)),
      windows_{.context = options.context > 0 ? options.context : model.context(),
               .batch_size = options.batch_size} {
  data::DrawWindows(std::ssize(training_), windows_, 0);  // whether there is enough
}

std::int64_t TextTask::StartEpoch(std::int64_t epoch, std::uint64_t seed) {
  windows_.epoch = epoch;
  windows_.seed = seed;
  return std::max<std::int64_t>(std::ssize(training_) / (windows_.context * windows_.batch_size), 1);
}

LossSum TextTask::Loss(std::int64_t batch, const Share& share, std::uint64_t seed) {
  const auto windows = share.Of(data::DrawWindows(std::ssize(training_), windows_, batch));
  if (windows.empty()) return {};
  return model_.Loss(MakeTokenBatch(training_, windows), seed);
}

Measures TextTask::Validate(const std::function<bool()>& stop) {
  if (validation_.size() < 2) return {};
  const TextLoss loss = MeasureText(model_, validation_, stop);
  if (stop()) return {};
  return {{"loss", loss.nats / static_cast<double>(loss.tokens)}};
}

}  // namespace regard::train
