// Batches of sentences of like length, the same for the same seed and epoch; shortening of long sources.
#ifndef REGARD_DATA_BATCHES_H_
#define REGARD_DATA_BATCHES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace regard::data {

struct BatchOptions {
  std::int64_t batch_size = 64;  // sentences a batch at most; 0: no limit
  std::int64_t max_tokens =
      0;  // sentences x longest length at most (a longer sentence is alone); 0: no limit
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  bool shuffle = true;    // new batches in a new order each epoch; off: the given order
  bool by_length = true;  // with shuffle: sentences of like length together
};

// Indices into lengths, each exactly once. A pure function of its arguments, so a resumed training makes the
// same list again and goes on at any batch. Throws regard::UsageError when no limit is set or one is
// negative.
std::vector<std::vector<std::int64_t>> MakeBatches(const std::vector<std::int64_t>& lengths,
                                                   const BatchOptions& options);

struct Truncation {
  std::int64_t count = 0;    // sources shortened
  std::int64_t longest = 0;  // tokens of the longest, before
  // "3 of 600 sources are longer than 10 tokens (the longest has 14) and were shortened"; empty when count is
  // 0.
  std::string warning;
};

// Shortens each sequence longer than max_length tokens, its end mark counted, to max_length; the last token
// (the end mark) is kept. max_length < 1 is a regard::UsageError.
Truncation Truncate(std::vector<std::vector<std::int64_t>>& sources, std::int64_t max_length,
                    const std::string& noun = "sources");

}  // namespace regard::data

#endif  // REGARD_DATA_BATCHES_H_
