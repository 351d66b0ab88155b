#include "train/translation_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/error.h"

namespace regard::train {
namespace {

torch::Tensor Padded(const TokenLists& lists, const std::vector<std::int64_t>& indices) {
  std::size_t longest = 0;
  for (const std::int64_t i : indices) longest = std::max(longest, lists[static_cast<std::size_t>(i)].size());
  const auto rows = static_cast<std::int64_t>(indices.size()), columns = static_cast<std::int64_t>(longest);
  torch::Tensor tensor = torch::empty({rows, columns}, torch::kLong);
  std::int64_t* out = tensor.data_ptr<std::int64_t>();
  for (const std::int64_t i : indices) {
    const std::vector<std::int64_t>& list = lists[static_cast<std::size_t>(i)];
    std::fill(std::copy(list.begin(), list.end(), out), out + columns, models::kPad);
    out += columns;
  }
  return tensor;
}

torch::Tensor Lengths(const TokenLists& lists, const std::vector<std::int64_t>& indices, std::int64_t less) {
  torch::Tensor lengths = torch::empty({static_cast<std::int64_t>(indices.size())}, torch::kLong);
  std::int64_t* out = lengths.data_ptr<std::int64_t>();
  for (const std::int64_t i : indices) {
    *out++ = static_cast<std::int64_t>(lists[static_cast<std::size_t>(i)].size()) - less;
  }
  return lengths;
}

// What a batch of this pair costs; sorting by it puts like sources together, and like targets among those.
std::vector<std::int64_t> PairLengths(const EncodedPairs& pairs) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(pairs.sources.size());
  for (std::size_t i = 0; i < pairs.sources.size(); ++i) {
    lengths.push_back(static_cast<std::int64_t>(std::max(pairs.sources[i].size(), pairs.targets[i].size())));
  }
  return lengths;
}

}  // namespace

EncodedPairs EncodePairs(const std::vector<data::Pair>& pairs, const data::Tokenizer& source,
                         const data::Tokenizer& target, std::int64_t max_source, std::int64_t max_target) {
  EncodedPairs encoded;
  encoded.sources.reserve(pairs.size());
  encoded.targets.reserve(pairs.size());
  for (const data::Pair& pair : pairs) {
    encoded.sources.push_back(source.Encode(pair.source));
    encoded.sources.back().push_back(models::kEos);
    encoded.targets.push_back(target.Encode(pair.target));
    encoded.targets.back().push_back(models::kEos);
  }
  if (max_source > 0) encoded.truncated_sources = data::Truncate(encoded.sources, max_source);
  if (max_target > 0) encoded.truncated_targets = data::Truncate(encoded.targets, max_target, "targets");
  for (auto& tokens : encoded.targets) tokens.insert(tokens.begin(), models::kBos);
  return encoded;
}

models::PairBatch MakePairBatch(const EncodedPairs& pairs, const std::vector<std::int64_t>& indices) {
  return {Padded(pairs.sources, indices), Lengths(pairs.sources, indices, 0), Padded(pairs.targets, indices),
          Lengths(pairs.targets, indices, 1)};
}

SourceBatch MakeSourceBatch(const TokenLists& sources, const std::vector<std::int64_t>& indices) {
  return {Padded(sources, indices), Lengths(sources, indices, 0)};
}

std::vector<std::vector<std::int64_t>> SortedBatches(const std::vector<std::int64_t>& lengths,
                                                     std::int64_t batch_size) {
  std::vector<std::int64_t> order(lengths.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return lengths[static_cast<std::size_t>(a)] < lengths[static_cast<std::size_t>(b)];
  });
  std::vector<std::vector<std::int64_t>> batches;
  for (std::size_t begin = 0; begin < order.size(); begin += static_cast<std::size_t>(batch_size)) {
    const std::size_t end = std::min(order.size(), begin + static_cast<std::size_t>(batch_size));
    batches.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return batches;
}

double LossPerToken(models::TranslationModel& model, const EncodedPairs& pairs, std::int64_t batch_size,
                    std::int64_t* tokens, const std::function<bool()>& stop) {
  torch::NoGradGuard no_grad;
  double nats = 0;
  std::int64_t count = 0;
  for (const auto& batch : SortedBatches(PairLengths(pairs), batch_size)) {
    if (stop()) return std::numeric_limits<double>::quiet_NaN();
    const LossSum loss = model.Loss(MakePairBatch(pairs, batch), /*label_smoothing=*/0, /*seed=*/0);
    nats += loss.nats.item<double>();
    count += loss.tokens;
  }
  if (tokens != nullptr) *tokens = count;
  return nats / static_cast<double>(std::max<std::int64_t>(count, 1));
}

TranslationTask::TranslationTask(models::TranslationModel& model, EncodedPairs training,
                                 EncodedPairs validation, const TranslationTaskOptions& options,
                                 Metric metric)
    : model_(model),
      training_(std::move(training)),
      validation_(std::move(validation)),
      options_(options),
      metric_(std::move(metric)),
      lengths_(PairLengths(training_)) {}

std::int64_t TranslationTask::StartEpoch(std::int64_t epoch, std::uint64_t seed) {
  data::BatchOptions batching;
  batching.batch_size = options_.batch_size;
  batching.max_tokens = options_.max_tokens;
  batching.seed = seed;
  batching.epoch = epoch;
  batching.by_length = options_.by_length;
  batches_ = data::MakeBatches(lengths_, batching);
  return static_cast<std::int64_t>(batches_.size());
}

LossSum TranslationTask::Loss(std::int64_t batch, const Share& share, std::uint64_t seed) {
  const auto rows = share.Of(batches_[static_cast<std::size_t>(batch)]);
  if (rows.empty()) return {};
  return model_.Loss(MakePairBatch(training_, rows), options_.label_smoothing, seed);
}

Measures TranslationTask::Validate(const std::function<bool()>& stop) {
  if (validation_.sources.empty()) return {};
  Measures measures;
  const std::int64_t batch_size = options_.batch_size > 0 ? options_.batch_size : 64;
  measures["loss"] = LossPerToken(model_, validation_, batch_size, nullptr, stop);
  if (stop()) return {};
  if (metric_) measures.merge(metric_(model_, stop));
  if (stop()) return {};
  return measures;
}

}  // namespace regard::train
