// The threads of torch's operators, for the engine.
#ifndef REGARD_NN_TORCH_THREADS_H_
#define REGARD_NN_TORCH_THREADS_H_

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

namespace regard::nn {

// A regard::ParallelFor: tasks are handed out one by one.
inline void TorchParallelFor(std::int64_t count, const std::function<void(std::int64_t)>& task) {
  std::atomic<std::int64_t> next{0};
  at::parallel_for(0, std::min<std::int64_t>(count, at::get_num_threads()), 1,
                   [&](std::int64_t, std::int64_t) {
                     for (std::int64_t i = next++; i < count; i = next++) task(i);
                   });
}

}  // namespace regard::nn

#endif  // REGARD_NN_TORCH_THREADS_H_
