#include "bench/measure.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

#include "engine/base/error.h"

namespace regard::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(const std::function<void()>& f, int times) {
  const auto start = Clock::now();
  for (int n = 0; n < times; ++n) f();
  return std::chrono::duration<double>(Clock::now() - start).count() / times;
}

void Rest() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

class Sampler {
 public:
  explicit Sampler(const std::function<void()>& f) : f_(f) {
    Seconds(f_, 1);  // touches its memory, starts its threads
    const double once = Seconds(f_, 1);
    repeats_ = static_cast<int>(std::clamp(std::ceil(0.02 / std::max(once, 1e-9)), 1.0, 1e6));
  }

  double Run() const {
    Rest();
    if (repeats_ > 1) f_();
    return Seconds(f_, repeats_);
  }

 private:
  const std::function<void()>& f_;
  int repeats_ = 1;
};

// A line "NAME:  123 kB" of /proc/self/status, in bytes.
double Status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stod(line.substr(name.size() + 1)) * 1024;
  }
  throw Error("/proc/self/status has no line " + name + ": memory cannot be measured here");
}

}  // namespace

Quartiles QuartilesOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const double place = part * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
  };
  return {at(0.25), at(0.5), at(0.75)};
}

Comparison Compare(const std::function<void()>& ours, const std::function<void()>& peer, int runs,
                   const std::function<void(int run)>& progress) {
  progress(0);
  const Sampler our_sampler(ours), peer_sampler(peer);
  std::vector<double> our_times, peer_times, ratios;
  for (int run = 0; run < runs; ++run) {
    progress(run);
    our_times.push_back(our_sampler.Run());
    peer_times.push_back(peer_sampler.Run());
    ratios.push_back(peer_times.back() / our_times.back());
  }
  return {QuartilesOf(our_times), QuartilesOf(peer_times), QuartilesOf(ratios)};
}

Quartiles TimeOf(const std::function<void()>& f, int runs) {
  const Sampler sampler(f);
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) times.push_back(sampler.Run());
  return QuartilesOf(times);
}

double PeakGrowth(const std::function<void()>& f) {
  malloc_trim(0);  // what was freed earlier would be used again unseen
  if (std::ofstream reset("/proc/self/clear_refs"); !(reset << "5" << std::flush)) {
    throw Error("/proc/self/clear_refs cannot be written: memory cannot be measured here");
  }
  const double before = Status("VmRSS");
  f();
  return Status("VmHWM") - before;
}

}  // namespace regard::bench
