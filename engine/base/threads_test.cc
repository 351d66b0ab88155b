#include "engine/base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace regard::engine {
namespace {

TEST(RunParallel, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 7}) {
    for (std::int64_t count : {0, 1, 2, 5, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      RunParallel(threads, count, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
      for (const auto& r : runs) EXPECT_EQ(r, 1);
    }
  }
}

TEST(RunParallel, UsesTheThreadsThatItMay) {
  // Three tasks that wait for each other can only end on three threads.
  std::atomic<int> arrived = 0;
  RunParallel(3, 3, [&](std::int64_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST(RunParallel, OneThreadIsTheCaller) {
  std::set<std::thread::id> ids;
  RunParallel(1, 10, [&](std::int64_t) { ids.insert(std::this_thread::get_id()); });
  EXPECT_EQ(ids, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(RunParallel, MayBeCalledFromSeveralThreadsAndFromATask) {
  std::atomic<int> runs = 0;
  const auto outer = [&] {
    RunParallel(2, 20, [&](std::int64_t) { RunParallel(3, 10, [&](std::int64_t) { ++runs; }); });
  };
  std::thread other(outer);
  outer();
  other.join();
  EXPECT_EQ(runs, 2 * 20 * 10);
}

}  // namespace
}  // namespace regard::engine
