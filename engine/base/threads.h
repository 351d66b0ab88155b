// The engine's own threads: started when first needed, kept until the program ends.
#ifndef REGARD_ENGINE_BASE_THREADS_H_
#define REGARD_ENGINE_BASE_THREADS_H_

#include <cstdint>
#include <functional>

namespace regard::engine {

// As many as the machine has cores for this process, at least 1.
int HardwareThreads();

// Runs task(0) .. task(count - 1) on at most `threads` threads, the calling one among them, and returns when
// all are done. Each is run once; which thread runs which, and in what order, is open. A task must not throw.
// May be called from several threads at once, and from within a task.
void RunParallel(int threads, std::int64_t count, const std::function<void(std::int64_t)>& task);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_BASE_THREADS_H_
