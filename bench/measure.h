// Times two sides against each other.
#ifndef REGARD_BENCH_MEASURE_H_
#define REGARD_BENCH_MEASURE_H_

#include <functional>
#include <vector>

namespace regard::bench {

struct Quartiles {
  double low = 0, median = 0, high = 0;
};
// Linear between neighbours; `values` not empty.
Quartiles QuartilesOf(std::vector<double> values);

struct Comparison {
  Quartiles ours, peer;  // seconds a call
  Quartiles ratio;       // peer / ours of neighbouring runs: how many times faster ours is
};

// Calls both once, untimed, then alternately, `runs` times each. A short call is repeated within a run until
// that takes 20 ms, after an untimed one. Between the runs the machine rests a moment: OpenMP's threads go on
// waiting actively for some time after a call, on the cores that the next one needs.
Comparison Compare(const std::function<void()>& ours, const std::function<void()>& peer, int runs,
                   const std::function<void(int run)>& progress);

// Seconds a call of f, over `runs` runs that are made as those of Compare.
Quartiles TimeOf(const std::function<void()>& f, int runs);

// Largest resident memory, in bytes, while f runs, above what was resident before it.
double PeakGrowth(const std::function<void()>& f);

}  // namespace regard::bench

#endif  // REGARD_BENCH_MEASURE_H_
