// The tasks of a call, on the threads that its options name.
#ifndef REGARD_ENGINE_RUN_TASKS_H_
#define REGARD_ENGINE_RUN_TASKS_H_

#include <cstdint>
#include <functional>

#include "engine/base/threads.h"
#include "regard/attention.h"

namespace regard::engine {

// Runs task(0) .. task(count - 1) and returns when all are done. A task must not throw.
template <typename T>
void RunTasks(const AttentionOptions<T>& options, std::int64_t count,
              const std::function<void(std::int64_t)>& task) {
  if (count <= 1 || options.threads == 1) {
    for (std::int64_t i = 0; i < count; ++i) task(i);
  } else if (options.parallel_for) {
    options.parallel_for(count, task);
  } else {
    RunParallel(options.threads == 0 ? HardwareThreads() : options.threads, count, task);
  }
}

}  // namespace regard::engine

#endif  // REGARD_ENGINE_RUN_TASKS_H_
