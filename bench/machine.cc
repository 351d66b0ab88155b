#include "bench/machine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "engine/base/memory.h"
#include "regard/attention.h"

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/machine.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace regard::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Latency 4 on two ports needs 8 chains; 12 leave room, and fit the 16 registers of AVX2 with both operands.
constexpr int kChains = 12;

// Multiply-adds until `stop`; x converges to 1, far from overflow and denormals. Gives the operations done.
double MultiplyAdds(const std::atomic<bool>& stop, float* sink) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const V a = hn::Set(d, 0.75f), b = hn::Set(d, 0.25f);
  V x[kChains];
  for (int c = 0; c < kChains; ++c) x[c] = hn::Iota(d, static_cast<float>(c));
  double rounds = 0;
  for (; !stop.load(std::memory_order_relaxed); ++rounds) {
    for (int n = 0; n < 1000; ++n) {
      for (int c = 0; c < kChains; ++c) x[c] = hn::MulAdd(x[c], a, b);
    }
  }
  V sum = x[0];
  for (int c = 1; c < kChains; ++c) sum = hn::Add(sum, x[c]);
  *sink = hn::GetLane(sum);
  return rounds * 1000 * kChains * 2 * static_cast<double>(hn::Lanes(d));
}

// The sum of n floats, n a multiple of 8 * 64: 8 streams, so that many cache lines are on their way at once.
float Sum(const float* p, std::size_t n) {
  const hn::ScalableTag<float> d;
  constexpr std::size_t kStreams = 8;
  const std::size_t each = n / kStreams;
  hn::Vec<decltype(d)> sums[kStreams];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (std::size_t at = 0; at < each; at += hn::Lanes(d)) {
    for (std::size_t s = 0; s < kStreams; ++s) sums[s] = hn::Add(sums[s], hn::LoadU(d, p + s * each + at));
  }
  for (std::size_t s = 1; s < kStreams; ++s) sums[0] = hn::Add(sums[0], sums[s]);
  return hn::GetLane(sums[0]);
}

}  // namespace HWY_NAMESPACE
}  // namespace regard::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::bench {
HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(Sum);

namespace {

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Runs f(thread) on each of `threads` threads at once, the calling one among them.
void OnThreads(int threads, const std::function<void(int)>& f) {
  std::atomic<int> missing{threads};
  const auto run = [&](int thread) {
    for (--missing; missing > 0;) std::this_thread::yield();
    f(thread);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(run, t);
  run(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown processor";
}

double FmaPeak(int threads) {
  InstructionSet();  // chooses the target
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::atomic<bool> stop{false};
    std::vector<double> rates(static_cast<std::size_t>(threads));
    std::vector<float> sinks(rates.size());
    std::thread timer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stop = true;
    });
    OnThreads(threads, [&](int t) {
      const auto start = Clock::now();
      const double done = HWY_DYNAMIC_DISPATCH(MultiplyAdds)(stop, &sinks[t]);
      rates[t] = done / Since(start);
    });
    timer.join();
    double total = 0;
    for (const double rate : rates) total += rate;
    best = std::max(best, total);
  }
  return best;
}

double ReadBandwidth(int threads) {
  InstructionSet();
  constexpr std::size_t kFloats = std::size_t{1} << 28;  // 1 GB
  const std::size_t each = kFloats / static_cast<std::size_t>(threads) / 512 * 512;
  const engine::Buffer<float> memory(each * static_cast<std::size_t>(threads));
  const auto part = [&](int t) { return memory.data() + static_cast<std::size_t>(t) * each; };
  OnThreads(threads, [&](int t) { std::fill_n(part(t), each, 1.0f); });
  double best = 0;
  std::vector<float> sinks(static_cast<std::size_t>(threads));
  for (int repeat = 0; repeat < 4; ++repeat) {
    const auto start = Clock::now();
    OnThreads(threads, [&](int t) { sinks[t] += HWY_DYNAMIC_DISPATCH(Sum)(part(t), each); });
    best = std::max(best, static_cast<double>(each) * threads * sizeof(float) / Since(start));
  }
  return best;
}

}  // namespace regard::bench
#endif  // HWY_ONCE
