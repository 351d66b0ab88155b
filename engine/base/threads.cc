#include "engine/base/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace regard::engine {
namespace {

// One call of RunParallel: threads take the next number until none is left.
struct Job {
  Job(std::int64_t count_, const std::function<void(std::int64_t)>& task_, int helpers)
      : count(count_), task(task_), helpers_wanted(helpers) {}

  const std::int64_t count;
  const std::function<void(std::int64_t)>& task;
  int helpers_wanted;
  std::atomic<std::int64_t> next{0};
  std::atomic<int> helpers_running{0};  // written under the pool's mutex
  std::condition_variable helpers_left;

  void Work() {
    for (std::int64_t i = next++; i < count; i = next++) task(i);
  }
};

// Waits for a condition that is likely to hold soon: a sleeping thread takes as long to wake as a small call
// to compute. Other threads that want the core have it.
template <typename Condition>
void WaitBriefly(const Condition& condition) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::microseconds(50);
  while (!condition() && Clock::now() < end) std::this_thread::yield();
}

class Pool {
 public:
  static Pool& Get() {
    static Pool pool;
    return pool;
  }

  void Run(int threads, std::int64_t count, const std::function<void(std::int64_t)>& task) {
    Job job(count, task, threads - 1);
    {
      const std::lock_guard lock(mutex_);
      Grow(threads - 1);
      jobs_.push_back(&job);
      open_jobs_ = jobs_.size();
    }
    wake_.notify_all();
    job.Work();
    // Nothing is left to take: withdraw the job, and wait for the tasks that helpers still run.
    std::unique_lock lock(mutex_);
    if (const auto at = std::find(jobs_.begin(), jobs_.end(), &job); at != jobs_.end()) jobs_.erase(at);
    open_jobs_ = jobs_.size();
    lock.unlock();
    WaitBriefly([&] { return job.helpers_running == 0; });
    lock.lock();
    job.helpers_left.wait(lock, [&] { return job.helpers_running == 0; });
  }

 private:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void Grow(int workers) {
    try {
      while (static_cast<int>(workers_.size()) < workers) workers_.emplace_back([this] { Help(); });
    } catch (const std::system_error&) {
      // The system gives no more threads: the job is done by those there are.
    }
  }

  void Help() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      Job& job = *jobs_.front();
      if (++job.helpers_running; --job.helpers_wanted == 0) jobs_.pop_front();
      open_jobs_ = jobs_.size();
      lock.unlock();
      job.Work();
      lock.lock();
      if (--job.helpers_running == 0) job.helpers_left.notify_all();
      lock.unlock();
      WaitBriefly([&] { return open_jobs_ > 0; });
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job*> jobs_;  // with room for helpers
  std::atomic<std::size_t> open_jobs_{0};
  std::vector<std::thread> workers_;
  bool stop_ = false;
};

}  // namespace

int HardwareThreads() {
  static const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return threads;
}

void RunParallel(int threads, std::int64_t count, const std::function<void(std::int64_t)>& task) {
  threads = static_cast<int>(std::min<std::int64_t>(threads, count));
  if (threads > 1) return Pool::Get().Run(threads, count, task);
  for (std::int64_t i = 0; i < count; ++i) task(i);
}

}  // namespace regard::engine
