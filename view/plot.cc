#include "view/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <regex>

#include "engine/base/error.h"
#include "view/markup.h"
#include "view/svg_parts.h"
#include "view/token_text.h"

namespace regard::view {
namespace {

// Pixels.
constexpr double kWidth = 560, kHeight = 360, kMargin = 28, kLeft = 62, kBottom = 46, kLetter = 7.2;
constexpr char kInk[] = "#1c2030", kSoft[] = "#626a7c", kLine[] = "#e3e7ee";
// Told apart with any colour vision, and by their lightness (Okabe and Ito 2008, in an order of our own).
constexpr std::array kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00"};

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value + 0.0);  // 0 for -0
  return text;
}

std::string Label(double x, double y, const std::string& attributes, const std::string& text) {
  return Text(x, y, attributes, ShownText(text));
}

// From numbers to pixels, with round numbers as ticks.
class Axis {
 public:
  Axis(double low, double high, bool log, double start, double end) : log_(log), start_(start), end_(end) {
    low = Scaled(low), high = Scaled(high);
    const double margin = high > low ? 0.04 * (high - low) : std::max(0.5, 0.1 * std::abs(low));
    low_ = low - margin, high_ = high + margin;
    log_ ? SetDecades() : SetRoundTicks();
  }

  double operator()(double value) const {
    return start_ + (Scaled(value) - low_) / (high_ - low_) * (end_ - start_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  double Scaled(double value) const { return log_ ? std::log10(value) : value; }

  void SetRoundTicks() {
    const double rough = (high_ - low_) / 6, power = std::pow(10, std::floor(std::log10(rough)));
    const double digit = rough / power;
    const double step = power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
    for (double n = std::ceil(low_ / step); n * step <= high_; ++n) ticks_.push_back(n * step);
  }

  // Powers of ten; of two, too, where there are few of them.
  void SetDecades() {
    const bool few = high_ - low_ < 2.5;
    const double base = few ? std::log10(2.0) : 1.0;
    const double every = std::max(1.0, std::ceil((high_ - low_) / base / 8));
    for (double n = std::ceil(low_ / base); n * base <= high_; ++n) {
      if (std::fmod(std::abs(n), every) == 0) ticks_.push_back(std::pow(10, n * base));
    }
  }

  bool log_;
  double start_, end_, low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

bool IsDrawn(const Plot& plot, double x, double y) {
  return std::isfinite(x) && std::isfinite(y) && (!plot.log_x || x > 0) && (!plot.log_y || y > 0);
}

std::string Circle(double x, double y, const std::string& color, const std::string& attributes = "") {
  return "<circle cx=\"" + At(x) + "\" cy=\"" + At(y) + "\" r=\"3\" fill=\"" + color + "\"" + attributes +
         "/>\n";
}

std::string Place(char command, double x, double y) {
  std::string place(1, command);
  place += At(x);
  place += ',';
  return place += At(y);
}

std::string SeriesMarkup(const Plot& plot, const Series& series, const Axis& x, const Axis& y,
                         const std::string& color) {
  std::string markup, path;
  bool pen_up = true;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!IsDrawn(plot, series.x[i], series.y[i])) {
      pen_up = true;
      continue;
    }
    const double px = x(series.x[i]), py = y(series.y[i]);
    if (series.points) {
      markup += Circle(px, py, color, " fill-opacity=\"0.75\"");
    } else {
      path += Place(pen_up ? 'M' : 'L', px, py);
    }
    pen_up = false;
  }
  if (path.empty()) return markup;
  return "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + color + "\" stroke-width=\"2.2\"" +
         (series.dashed ? " stroke-dasharray=\"6 4\"" : "") + " stroke-linejoin=\"round\"/>\n";
}

std::string AxesMarkup(const Plot& plot, const Axis& x, const Axis& y, double top, double bottom) {
  const std::string soft = std::string("fill=\"") + kSoft + "\" font-size=\"11\"";
  const double right = kWidth - kMargin;
  std::string markup;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    markup += "<path d=\"M" + At(x1) + "," + At(y1) + "L" + At(x2) + "," + At(y2) + "\" stroke=\"" + kLine +
              "\"/>\n";
  };
  for (const double tick : x.ticks()) {
    line(x(tick), top, x(tick), bottom);
    markup += Label(x(tick), bottom + 16, soft + " text-anchor=\"middle\"", Number(tick));
  }
  for (const double tick : y.ticks()) {
    line(kLeft, y(tick), right, y(tick));
    markup += Label(kLeft - 7, y(tick) + 4, soft + " text-anchor=\"end\"", Number(tick));
  }
  if (!plot.x_axis.empty()) {
    markup += Label((kLeft + right) / 2, bottom + 36, soft + " text-anchor=\"middle\"", plot.x_axis);
  }
  if (!plot.y_axis.empty()) {
    const double middle = (top + bottom) / 2;
    markup +=
        Label(14, middle, soft + " text-anchor=\"middle\" transform=\"rotate(-90 14 " + At(middle) + ")\"",
              plot.y_axis);
  }
  return markup;
}

std::string LegendMarkup(const Plot& plot, double top) {
  std::string markup;
  double x = kLeft;
  for (std::size_t n = 0; n < plot.series.size(); ++n) {
    const Series& series = plot.series[n];
    if (series.name.empty()) continue;
    const std::string color = kColors[n % kColors.size()];
    if (series.points) {
      markup += Circle(x + 9, top, color);
    } else {
      markup += "<path d=\"M" + At(x) + "," + At(top) + "h18\" stroke=\"" + color +
                "\" stroke-width=\"2.2\"" + (series.dashed ? " stroke-dasharray=\"6 4\"" : "") + "/>\n";
    }
    markup += Label(x + 24, top + 4, "font-size=\"12\"", series.name);
    x += 44 + kLetter * DisplayWidth(ShownText(series.name));
  }
  return markup;
}

}  // namespace

std::string PlotSvg(const Plot& plot) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low_x = kInfinity, high_x = -kInfinity, low_y = kInfinity, high_y = -kInfinity;
  for (const Series& series : plot.series) {
    if (series.x.size() != series.y.size()) {
      throw Error("series \"" + series.name + "\": " + std::to_string(series.x.size()) + " x for " +
                  std::to_string(series.y.size()) + " y");
    }
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!IsDrawn(plot, series.x[i], series.y[i])) continue;
      low_x = std::min(low_x, series.x[i]), high_x = std::max(high_x, series.x[i]);
      low_y = std::min(low_y, series.y[i]), high_y = std::max(high_y, series.y[i]);
    }
  }
  if (low_x > high_x) throw Error("plot \"" + plot.title + "\": there is no point to draw");
  const double title = plot.title.empty() ? 0 : 30;
  const bool legend = std::any_of(plot.series.begin(), plot.series.end(),
                                  [](const Series& series) { return !series.name.empty(); });
  const double top = kMargin + title + (legend ? 26 : 0), bottom = top + kHeight - kMargin - kBottom;
  const double height = bottom + kBottom;
  const Axis x(low_x, high_x, plot.log_x, kLeft, kWidth - kMargin);
  const Axis y(low_y, high_y, plot.log_y, bottom, top);
  std::string body = AxesMarkup(plot, x, y, top, bottom);
  if (!plot.title.empty())
    body += Label(kLeft, kMargin + 8, "font-size=\"15\" font-weight=\"600\"", plot.title);
  body += LegendMarkup(plot, kMargin + title + 4);
  for (std::size_t n = 0; n < plot.series.size(); ++n) {
    body += SeriesMarkup(plot, plot.series[n], x, y, kColors[n % kColors.size()]);
  }
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + At(kWidth) + "\" height=\"" + At(height) +
         "\" viewBox=\"0 0 " + At(kWidth) + " " + At(height) +
         "\" font-family=\"Inter, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif\" "
         "font-size=\"12\" fill=\"" +
         kInk + "\" xml:space=\"preserve\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
         body + "</svg>\n";
}

std::string Arrange(const std::vector<std::string>& svgs, std::size_t columns) {
  static const std::regex size("^<svg xmlns=\"[^\"]*\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"");
  double width = 0, x = 0, y = 0, line = 0;
  std::string body;
  for (std::size_t n = 0; n < svgs.size(); ++n) {
    std::smatch match;
    const std::string head = svgs[n].substr(0, 200);
    if (!std::regex_search(head, match, size)) throw Error("a picture to put beside others is not an SVG");
    if (n > 0 && columns > 0 && n % columns == 0) {
      x = 0;
      y += line;
      line = 0;
    }
    body += "<svg x=\"" + At(x) + "\" y=\"" + At(y) + "\"" + svgs[n].substr(4);
    x += std::stod(match[1]);
    width = std::max(width, x);
    line = std::max(line, std::stod(match[2]));
  }
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + At(width) + "\" height=\"" + At(y + line) +
         "\" viewBox=\"0 0 " + At(width) + " " + At(y + line) +
         "\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + body + "</svg>\n";
}

}  // namespace regard::view
