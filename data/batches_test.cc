#include "data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "data/random.h"
#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Numbers = std::vector<std::int64_t>;

Numbers RandomLengths(std::size_t count) {
  Random random(5);
  Numbers lengths(count);
  for (auto& length : lengths) length = 1 + static_cast<std::int64_t>(random.Below(40));
  return lengths;
}

std::int64_t Padded(const Numbers& lengths, const Numbers& batch) {
  std::int64_t longest = 0;
  for (const std::int64_t i : batch) longest = std::max(longest, lengths[static_cast<std::size_t>(i)]);
  return longest * static_cast<std::int64_t>(batch.size());
}

TEST(Batches, EachSentenceOnceAndWithinTheLimits) {
  const Numbers lengths = RandomLengths(1001);
  for (const bool shuffle : {false, true}) {
    for (const BatchOptions options :
         {BatchOptions{.batch_size = 64, .shuffle = shuffle},
          BatchOptions{.batch_size = 0, .max_tokens = 300, .shuffle = shuffle},
          BatchOptions{.batch_size = 10, .max_tokens = 300, .shuffle = shuffle}}) {
      Numbers seen;
      for (const Numbers& batch : MakeBatches(lengths, options)) {
        ASSERT_FALSE(batch.empty());
        const auto size = static_cast<std::int64_t>(batch.size());
        EXPECT_TRUE(options.batch_size == 0 || size <= options.batch_size) << size;
        EXPECT_TRUE(options.max_tokens == 0 || Padded(lengths, batch) <= options.max_tokens);
        seen.insert(seen.end(), batch.begin(), batch.end());
      }
      std::sort(seen.begin(), seen.end());
      Numbers all(lengths.size());
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(seen, all);
    }
  }
}

TEST(Batches, SameSeedAndEpochSameBatches) {
  const Numbers lengths = RandomLengths(500);
  const auto first = MakeBatches(lengths, {.seed = 1, .epoch = 3});
  EXPECT_EQ(MakeBatches(lengths, {.seed = 1, .epoch = 3}), first);
  EXPECT_NE(MakeBatches(lengths, {.seed = 1, .epoch = 4}), first);
  EXPECT_NE(MakeBatches(lengths, {.seed = 2, .epoch = 3}), first);
  // Pinned: a training that is resumed by another build goes on with the same batches.
  EXPECT_THAT(MakeBatches({1, 1, 1, 1, 1}, {.batch_size = 2, .seed = 1}),
              ElementsAre(Numbers{2, 4}, Numbers{0}, Numbers{1, 3}));
}

TEST(Batches, LikeLengthsTogether) {
  const Numbers lengths = RandomLengths(2000);
  const auto waste = [&](bool by_length) {
    std::int64_t padded = 0;
    for (const Numbers& batch : MakeBatches(lengths, {.by_length = by_length}))
      padded += Padded(lengths, batch);
    return static_cast<double>(padded) /
           static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  };
  EXPECT_LT(waste(true), 1.05);
  EXPECT_GT(waste(false), 1.5);
}

TEST(Batches, UnshuffledKeepTheOrder) {
  EXPECT_THAT(MakeBatches({5, 1, 3}, {.batch_size = 2, .shuffle = false}),
              ElementsAre(Numbers{0, 1}, Numbers{2}));
  EXPECT_THAT(MakeBatches({2, 9, 2, 2}, {.batch_size = 0, .max_tokens = 4, .shuffle = false}),
              ElementsAre(Numbers{0}, Numbers{1}, Numbers{2, 3}));
  EXPECT_TRUE(MakeBatches({}, {}).empty());
}

TEST(Batches, WithoutALimitIsAnError) {
  EXPECT_THAT(ErrorOf([] { MakeBatches({1}, {.batch_size = 0}); }),
              HasSubstr("batch_size 0 and max_tokens 0"));
  EXPECT_THROW(MakeBatches({1}, {.batch_size = -1}), UsageError);
}

// Text case 6.
TEST(Truncation, KeepsTheEndMarkAndCounts) {
  std::vector<Numbers> sources = {{4, 5, 6, 7, 2}, {4, 5, 2}, {4, 5, 6, 2}, {2}};
  const Truncation result = Truncate(sources, 3);
  EXPECT_THAT(sources, ElementsAre(Numbers{4, 5, 2}, Numbers{4, 5, 2}, Numbers{4, 5, 2}, Numbers{2}));
  EXPECT_EQ(result.count, 2);
  EXPECT_EQ(result.longest, 5);
  EXPECT_EQ(result.warning, "2 of 4 sources are longer than 3 tokens (the longest has 5) and were shortened");
  EXPECT_EQ(Truncate(sources, 3).warning, "");
  Truncate(sources, 1);
  EXPECT_THAT(sources[0], ElementsAre(2));
  EXPECT_THROW(Truncate(sources, 0), UsageError);
}

}  // namespace
}  // namespace regard::data
