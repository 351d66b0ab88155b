#include "view/image_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/base/error.h"
#include "view/markup.h"
#include "view/png.h"
#include "view/svg_parts.h"
#include "view/token_text.h"

namespace regard::view {
namespace {

// Pixels.
constexpr double kMargin = 28, kGap = 22, kTitle = 24, kSide = 176, kRowWidth = 1240, kLetter = 7.6;
constexpr char kInk[] = "#1c2030", kSoft[] = "#626a7c", kAlarm[] = "#d6336c";
constexpr char kLook[] = "#ff8a1f", kFrame[] = "#c9ced8";
// Opacities: of the colour of the largest weight, and of the shade over what has none or was not seen.
constexpr double kStrongest = 0.72, kShade = 0.62;

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string Percent(double share) {
  std::string text = Number(100 * share);
  return text += " %";
}

// Attributes of a place and a size.
std::string Box(double x, double y, double width, double height) {
  return " x=\"" + At(x) + "\" y=\"" + At(y) + "\" width=\"" + At(width) + "\" height=\"" + At(height) + "\"";
}

struct Patches {
  explicit Patches(const ImagePanel& panel)
      : down(panel.rows / panel.patch),
        across(panel.columns / panel.patch),
        pixel(kSide / static_cast<double>(std::max(panel.rows, panel.columns))),
        side(pixel * static_cast<double>(panel.patch)) {}
  std::int64_t count() const { return down * across; }
  double x(std::int64_t index) const { return static_cast<double>(index % across) * side; }
  double y(std::int64_t index) const {
    const std::int64_t row = index / across;
    return static_cast<double>(row) * side;
  }

  std::int64_t down, across;
  double pixel, side;  // on the screen
};

void Validate(const ImageDocument& document) {
  if (document.panels.empty()) throw Error("no image to draw");
  for (std::size_t i = 0; i < document.panels.size(); ++i) {
    const ImagePanel& panel = document.panels[i];
    const std::string name = "image " + std::to_string(i) + ": ";
    if (panel.rows < 1 || panel.columns < 1 || (panel.channels != 1 && panel.channels != 3))
      throw Error(name + std::to_string(panel.rows) + " x " + std::to_string(panel.columns) + " pixels of " +
                  std::to_string(panel.channels) + " channels; expected at least one, of 1 or 3 channels");
    const auto pixels = static_cast<std::size_t>(panel.rows * panel.columns * panel.channels);
    if (panel.pixels.size() != pixels)
      throw Error(name + std::to_string(panel.pixels.size()) + " values; expected " + std::to_string(pixels));
    if (panel.patch < 1 || panel.rows % panel.patch != 0 || panel.columns % panel.patch != 0)
      throw Error(name + "patches of " + std::to_string(panel.patch) + " pixels do not tile it");
    const std::int64_t count = Patches(panel).count();
    if (!panel.weights.empty() && std::ssize(panel.weights) != count)
      throw Error(name + std::to_string(panel.weights.size()) + " weights; expected one for each of " +
                  std::to_string(count) + " patches");
    for (const std::int64_t index : panel.glimpses)
      if (index < 0 || index >= count)
        throw Error(name + "patch " + std::to_string(index) + "; expected 0 to " + std::to_string(count - 1));
  }
}

// What each patch of a panel would have if all had the same.
double EvenShare(const ImagePanel& panel) {
  double sum = 0;
  for (const float weight : panel.weights) sum += weight;
  return sum / static_cast<double>(panel.weights.size());
}

// More than an even share is coloured, less is shaded.
std::string WeightMarkup(const ImagePanel& panel, const Patches& patches, double largest) {
  const double even = EvenShare(panel);
  std::string markup;
  for (std::int64_t i = 0; i < patches.count(); ++i) {
    const double weight = panel.weights[static_cast<std::size_t>(i)];
    const bool more = weight > even;
    const double opacity =
        more ? kStrongest * (weight - even) / (largest - even) : kShade * (even - weight) / even;
    if (!(opacity > 0.005)) continue;
    markup += std::string("<rect class=\"") + (more ? "weight" : "less") + "\"" +
              Box(patches.x(i), patches.y(i), patches.side, patches.side) + " fill=\"" +
              (more ? kLook : kInk) + "\" fill-opacity=\"" + Number(opacity) + "\"/>\n";
  }
  return markup;
}

// What was not seen is shaded; what was is framed and, where there is room, numbered.
std::string GlimpseMarkup(const ImagePanel& panel, const Patches& patches) {
  std::string markup =
      "<g class=\"unseen\" fill=\"" + std::string(kInk) + "\" fill-opacity=\"" + Number(kShade) + "\">\n";
  for (std::int64_t i = 0; i < patches.count(); ++i) {
    if (std::find(panel.glimpses.begin(), panel.glimpses.end(), i) == panel.glimpses.end())
      markup += "<rect" + Box(patches.x(i), patches.y(i), patches.side, patches.side) + "/>\n";
  }
  markup += "</g>\n<g fill=\"none\" stroke=\"" + std::string(kLook) + "\" stroke-width=\"2\">\n";
  for (const std::int64_t i : panel.glimpses)
    markup += "<rect class=\"glimpse\"" +
              Box(patches.x(i) + 1, patches.y(i) + 1, patches.side - 2, patches.side - 2) + "/>\n";
  markup += "</g>\n";
  if (patches.side < 13) return markup;
  // White on dark grey can be read over any pixel.
  const double height = std::min(0.62 * patches.side, 13.0);
  markup += "<g font-size=\"" + At(height) +
            "\" font-weight=\"700\" text-anchor=\"middle\" fill=\"#ffffff\" stroke=\"" + kInk +
            "\" stroke-width=\"2.6\" paint-order=\"stroke\">\n";
  for (std::size_t n = 0; n < panel.glimpses.size(); ++n) {
    const std::int64_t i = panel.glimpses[n];
    markup += Text(patches.x(i) + patches.side / 2, patches.y(i) + patches.side / 2 + 0.36 * height, "",
                   std::to_string(n + 1));
  }
  return markup + "</g>\n";
}

std::string PanelMarkup(const ImagePanel& panel, double largest) {
  const Patches patches(panel);
  const double width = patches.pixel * static_cast<double>(panel.columns),
               height = patches.pixel * static_cast<double>(panel.rows);
  std::string markup;
  if (!panel.title.empty()) {
    const std::string shown = Shorten(ShownText(panel.title), static_cast<int>(kSide / kLetter));
    markup += Text(
        0, 13,
        std::string("font-size=\"13\" font-weight=\"600\" fill=\"") + (panel.marked ? kAlarm : kInk) + "\"",
        shown);
  }
  std::string image =
      "<image" + Box(0, 0, width, height) +
      " preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,";
  image += Base64(PngBytes(panel.rows, panel.columns, panel.channels, panel.pixels)) + "\"/>\n";
  if (!panel.weights.empty()) image += WeightMarkup(panel, patches, largest);
  if (!panel.glimpses.empty()) image += GlimpseMarkup(panel, patches);
  image += "<rect" + Box(0, 0, width, height) + " fill=\"none\" stroke=\"" + kFrame + "\"/>\n";
  return markup + "<g transform=\"translate(0 " + At(kTitle) + ")\">\n" + image + "</g>\n";
}

// The colours of weights over middle grey, from none by an even share to the largest.
std::string Gradient() {
  const auto stop = [](const char* place, const char* color) {
    return std::string("<stop offset=\"") + place + "\" stop-color=\"" + color + "\"/>";
  };
  return "<defs><linearGradient id=\"regard-look\">" + stop("0", "#484b54") + stop("0.5", "#9a9a9a") +
         stop("1", "#e58d3d") + "</linearGradient></defs>\n";
}

std::string Legend(const ImageDocument& document, double largest) {
  const std::string soft = std::string("font-size=\"11\" fill=\"") + kSoft + "\"";
  std::string markup;
  double x = 0;
  if (largest > 0) {
    const auto soft_panel = std::find_if(document.panels.begin(), document.panels.end(),
                                         [](const ImagePanel& panel) { return !panel.weights.empty(); });
    markup += "<rect width=\"280\" height=\"10\" rx=\"3\" fill=\"url(#regard-look)\"/>\n";
    markup += Text(0, 24, soft, "no attention");
    markup +=
        Text(140, 24, soft + " text-anchor=\"middle\"", "even share, " + Percent(EvenShare(*soft_panel)));
    markup += Text(280, 24, soft + " text-anchor=\"end\"", Percent(largest));
    x = 320;
  }
  const auto is_hard = [](const ImagePanel& panel) { return !panel.glimpses.empty(); };
  if (std::any_of(document.panels.begin(), document.panels.end(), is_hard)) {
    markup +=
        "<rect" + Box(x + 1, 0, 11, 11) + " fill=\"none\" stroke=\"" + kLook + "\" stroke-width=\"2\"/>\n";
    markup += Text(x + 20, 10, soft, "looked at, numbered in order; what is shaded was not seen");
  }
  return markup;
}

}  // namespace

std::string ImageSvg(const ImageDocument& document) {
  Validate(document);
  double largest = 0;
  for (const ImagePanel& panel : document.panels)
    for (const float weight : panel.weights)
      if (std::isfinite(weight)) largest = std::max<double>(largest, weight);

  const auto count = static_cast<double>(document.panels.size());
  const double fitting = std::floor((kRowWidth + kGap) / (kSide + kGap));
  // Lines of about the same length: 9 of at most 6 become 5 + 4.
  const double columns = std::ceil(count / std::ceil(count / fitting));
  double top = kMargin;
  std::string body;
  const std::string title = ShownText(document.title);
  if (!document.title.empty()) {
    body += Text(kMargin, top + 14, "font-size=\"20\" font-weight=\"650\"", title);
    top += 40;
  }
  for (std::size_t i = 0; i < document.panels.size(); ++i) {
    const double column = std::fmod(static_cast<double>(i), columns),
                 row = std::floor(static_cast<double>(i) / columns);
    body += "<g transform=\"translate(" + At(kMargin + column * (kSide + kGap)) + " " +
            At(top + row * (kSide + kTitle + kGap)) + ")\">\n" + PanelMarkup(document.panels[i], largest) +
            "</g>\n";
  }
  top += std::ceil(count / columns) * (kSide + kTitle + kGap);
  body += "<g transform=\"translate(" + At(kMargin) + " " + At(top) + ")\">\n" + Legend(document, largest) +
          "</g>\n";
  const double height = top + 30 + kMargin;
  const double width = std::max({2 * kMargin + columns * (kSide + kGap) - kGap, 2 * kMargin + 420,
                                 2 * kMargin + 11.0 * DisplayWidth(title)});
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + At(width) + "\" height=\"" + At(height) +
         "\" viewBox=\"0 0 " + At(width) + " " + At(height) + "\" font-family=\"Inter, 'Segoe UI', Roboto, " +
         "'Noto Sans', 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"" + kInk + "\">\n" + Gradient() +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + body + "</svg>\n";
}

std::string ImagePage(const ImageDocument& document) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>" +
         EscapeShown(ShownText(document.title)) +
         "</title><style>body{margin:0;display:flex;justify-content:center}svg{max-width:100%;height:auto}"
         "</style></head>\n<body>\n" +
         ImageSvg(document) + "</body>\n</html>\n";
}

}  // namespace regard::view
