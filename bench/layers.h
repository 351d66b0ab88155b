// What a layer of attention, convolution and recurrence costs on the same sequence, against its length and
// width (the comparison of Vaswani et al. 2017, "Attention is all you need", table 1).
#ifndef REGARD_BENCH_LAYERS_H_
#define REGARD_BENCH_LAYERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace regard::bench {

inline constexpr std::int64_t kConvolutionWidth = 3;

enum class LayerKind { kAttention, kConvolution, kRecurrence };
inline constexpr LayerKind kLayerKinds[] = {LayerKind::kAttention, LayerKind::kConvolution,
                                            LayerKind::kRecurrence};

// What is known without measuring. n: the length, d: the width, k: kConvolutionWidth.
struct LayerTheory {
  std::string name, work;                            // "n²d"
  double work_by_length = 0, work_by_width = 0;      // exponents of n and d in it
  double memory_by_length = 1, memory_by_width = 1;  // of what a step has to keep
  std::string sequential, path;  // steps that wait for each other; the longest way between two elements
};
LayerTheory TheoryOf(LayerKind kind);

struct LayerPoint {
  std::int64_t length = 0, width = 0;
  double seconds = 0;  // median of a step: forward, the gradient of all inputs and weights
  double bytes = 0;    // the most that all tensors of a step take at once, beside x and the weights
};

struct LayerCosts {
  LayerKind kind;
  std::vector<LayerPoint> by_length, by_width;  // one size grows, the other stays
};

struct LayerSizes {
  std::vector<std::int64_t> lengths, widths;  // rising; at least 3 of each
  std::int64_t length = 0, width = 0;         // what stays
  int runs = 5;
};

// x [1, n, d] -> [1, n, d] by each layer: attention with q = k = v = x (its projections would add 4 n d²), a
// convolution over k = 3 elements, a GRU. `progress` is told which of how many points is next.
std::vector<LayerCosts> MeasureLayers(const LayerSizes& sizes,
                                      const std::function<void(int done, int all)>& progress);

// The slope of log y over log x by least squares, of the last three points: the exponent of a power law where
// what is small has ceased to matter. Throws regard::Error for fewer than two, or a number that is not above
// 0.
double FittedExponent(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace regard::bench

#endif  // REGARD_BENCH_LAYERS_H_
