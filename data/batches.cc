#include "data/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/random.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

// Fisher and Yates, from the end.
template <class T>
void Shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.Below(i)]);
}

void CheckOptions(const BatchOptions& options) {
  if (options.batch_size < 0 || options.max_tokens < 0 ||
      (options.batch_size == 0 && options.max_tokens == 0)) {
    throw UsageError(fmt::format("batch_size {} and max_tokens {}; expected at least one of them above 0",
                                 options.batch_size, options.max_tokens));
  }
}

}  // namespace

std::vector<std::vector<std::int64_t>> MakeBatches(const std::vector<std::int64_t>& lengths,
                                                   const BatchOptions& options) {
  CheckOptions(options);
  const auto length = [&](std::int64_t i) { return lengths[static_cast<std::size_t>(i)]; };
  std::vector<std::int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  // Each (seed, epoch) has a stream of its own: nothing is carried from epoch to epoch.
  Random random(Mix(options.seed) ^ Mix(~static_cast<std::uint64_t>(options.epoch)));
  if (options.shuffle) {
    Shuffle(order, random);
    if (options.by_length) {
      // Among sentences of one length the shuffled order stays: the batches differ from epoch to epoch.
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int64_t a, std::int64_t b) { return length(a) < length(b); });
    }
  }
  std::vector<std::vector<std::int64_t>> batches;
  std::int64_t longest = 0;
  for (const std::int64_t i : order) {
    const auto size = batches.empty() ? 0 : static_cast<std::int64_t>(batches.back().size());
    const bool too_many = options.batch_size > 0 && size == options.batch_size;
    const bool too_long =
        options.max_tokens > 0 && (size + 1) * std::max(longest, length(i)) > options.max_tokens;
    if (size == 0 || too_many || too_long) {
      batches.emplace_back();
      longest = 0;
    }
    batches.back().push_back(i);
    longest = std::max(longest, length(i));
  }
  if (options.shuffle) Shuffle(batches, random);
  return batches;
}

Truncation Truncate(std::vector<std::vector<std::int64_t>>& sources, std::int64_t max_length,
                    const std::string& noun) {
  if (max_length < 1) throw UsageError(fmt::format("maximum length {}; expected 1 or more", max_length));
  Truncation result;
  const auto limit = static_cast<std::size_t>(max_length);
  for (std::vector<std::int64_t>& source : sources) {
    if (source.size() <= limit) continue;
    ++result.count;
    result.longest = std::max(result.longest, static_cast<std::int64_t>(source.size()));
    source.erase(source.begin() + static_cast<std::ptrdiff_t>(limit - 1), source.end() - 1);
  }
  if (result.count > 0) {
    result.warning =
        fmt::format("{} of {} {} are longer than {} tokens (the longest has {}) and were shortened",
                    result.count, sources.size(), noun, max_length, result.longest);
  }
  return result;
}

}  // namespace regard::data
