// Curves and points over two axes, as an SVG.
#ifndef REGARD_VIEW_PLOT_H_
#define REGARD_VIEW_PLOT_H_

#include <cstddef>
#include <string>
#include <vector>

namespace regard::view {

struct Series {
  std::string name{};  // in the legend; empty: not there
  std::vector<double> x{}, y{};
  bool points = false;  // dots in place of a line
  bool dashed = false;  // of a line
};

struct Plot {
  std::string title{}, x_axis{}, y_axis{};  // may be empty
  bool log_x = false, log_y = false;        // only numbers above 0 are drawn
  std::vector<Series> series{};
};

// A point that is not finite, or not above 0 on a logarithmic axis, is left out and breaks its line. Throws
// Error naming the series whose x and y differ in number, and when there is no point to draw.
std::string PlotSvg(const Plot& plot);

// One SVG with several, `columns` side by side (0: all). Each has to be one that this project wrote; else it
// throws Error.
std::string Arrange(const std::vector<std::string>& svgs, std::size_t columns = 0);

}  // namespace regard::view

#endif  // REGARD_VIEW_PLOT_H_
