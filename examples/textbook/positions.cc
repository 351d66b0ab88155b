// The two properties of sinusoidal positions (Vaswani et al. 2017, section 3.5), in numbers and as a picture:
// each pair of columns has a period of its own, and a shift is the same rotation wherever it starts.
//
//   positions [PICTURE.svg]
#include "nn/positions.h"

#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

#include "view/attention_view.h"
#include "view/plot.h"

namespace {

using regard::view::PlotSvg;
using torch::Tensor;

constexpr std::int64_t kLength = 60, kWidth = 32, kShift = 7;

std::vector<double> Numbers(const Tensor& x) {
  const Tensor all = x.to(torch::kDouble).contiguous();
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

// The columns of pair n turned as a shift by kShift turns them.
Tensor Turned(const Tensor& pair, std::int64_t n) {
  const double angle = static_cast<double>(kShift) / std::pow(10000.0, 2.0 * static_cast<double>(n) / kWidth);
  const Tensor sine = pair.select(1, 0), cosine = pair.select(1, 1);
  return torch::stack(
      {sine * std::cos(angle) + cosine * std::sin(angle), cosine * std::cos(angle) - sine * std::sin(angle)},
      1);
}

std::string Table(const Tensor& positions) {
  regard::view::AttentionDocument map{"Positions", "column", "position", {}};
  const Tensor shifted = ((positions.t() + 1) / 2).to(torch::kFloat).contiguous();  // a heatmap starts at 0
  regard::view::AttentionPanel panel;
  panel.title = "(sine or cosine + 1) / 2";
  for (std::int64_t p = 0; p < kLength; ++p) panel.keys.push_back(std::to_string(p));
  for (std::int64_t c = 0; c < kWidth; ++c) panel.queries.push_back(std::to_string(c));
  panel.weights = {shifted.data_ptr<float>(), shifted.data_ptr<float>() + shifted.numel()};
  map.panels.push_back(panel);
  return regard::view::SvgDocument(map);
}

}  // namespace

int main(int count, char** arguments) {
  const Tensor table = regard::nn::Sinusoid(kLength, kWidth), place = torch::arange(kLength);
  regard::view::Plot periods{
      .title = "Each pair of columns has its period", .x_axis = "position", .y_axis = "sine"};
  regard::view::Plot rotation{
      .title = "A shift by 7 is one rotation", .x_axis = "position", .y_axis = "column 8"};
  double largest = 0;
  for (std::int64_t n = 0; n < kWidth / 2; ++n) {
    const Tensor pair = table.narrow(1, 2 * n, 2);
    const Tensor difference =
        Turned(pair.narrow(0, 0, kLength - kShift), n) - pair.narrow(0, kShift, kLength - kShift);
    largest = std::max(largest, difference.abs().max().item<double>());
    const double period = 2 * std::numbers::pi * std::pow(10000.0, 2.0 * static_cast<double>(n) / kWidth);
    std::printf("columns %2lld and %2lld: period %.1f\n", static_cast<long long>(2 * n),
                static_cast<long long>(2 * n + 1), period);
    if (n >= 3 && n <= 6) {
      periods.series.push_back(
          {"column " + std::to_string(2 * n), Numbers(place), Numbers(pair.select(1, 0))});
    }
    if (n == 4) {
      const Tensor from = place.narrow(0, 0, kLength - kShift);
      rotation.series.push_back({"at position p", Numbers(place), Numbers(pair.select(1, 0)), false, true});
      rotation.series.push_back(
          {"p turned", Numbers(from), Numbers(Turned(pair.narrow(0, 0, kLength - kShift), n).select(1, 0))});
      rotation.series.push_back({"at position p + 7", Numbers(from),
                                 Numbers(pair.narrow(0, kShift, kLength - kShift).select(1, 0)), true});
    }
  }
  std::printf("a shift by %lld turned: within %.1e of the row it leads to\n", static_cast<long long>(kShift),
              largest);
  if (count <= 1) return 0;
  std::ofstream file(arguments[1]);
  file << regard::view::Arrange({regard::view::Arrange({PlotSvg(periods), PlotSvg(rotation)}), Table(table)},
                                1);
  file.close();
  if (!file) {
    std::fprintf(stderr, "cannot write %s\n", arguments[1]);
    return 1;
  }
  std::printf("picture: %s\n", arguments[1]);
  return 0;
}
