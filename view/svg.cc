#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "view/attention_view.h"
#include "view/color.h"
#include "view/markup.h"
#include "view/svg_parts.h"
#include "view/token_text.h"

namespace regard::view {
namespace {

// Pixels. Widths of text are estimated on the wide side: an SVG cannot measure its font.
constexpr double kMargin = 28, kGap = 36, kAxisName = 20, kRowWidth = 1400, kLetter = 7.2, kSlant = 0.7071;
constexpr int kLongestLabel = 32;  // columns of a terminal
constexpr char kInk[] = "#1c2030", kSoft[] = "#626a7c", kAlarm[] = "#d6336c", kMasked[] = "#b9c0cc";

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

double TextWidth(const std::string& shown) { return kLetter * DisplayWidth(shown); }

struct Layout {
  std::vector<std::string> queries, keys;  // as shown, shortened
  double cell = 0, left = 0, top = 0;      // the matrix within the panel
  double width = 0, height = 0;            // the panel
  int turn = 0;                            // degrees that the labels of the columns are turned by
};

Layout LayoutOf(const AttentionPanel& panel) {
  Layout layout;
  double row_label = 0, column_label = 0;
  for (const std::string& token : panel.queries) {
    layout.queries.push_back(Shorten(ShownText(token), kLongestLabel));
    row_label = std::max(row_label, TextWidth(layout.queries.back()));
  }
  for (const std::string& token : panel.keys) {
    layout.keys.push_back(Shorten(ShownText(token), kLongestLabel));
    column_label = std::max(column_label, TextWidth(layout.keys.back()));
  }
  const auto columns = static_cast<double>(panel.keys.size());
  layout.cell = std::clamp(std::floor(640 / std::max(columns, 1.0)), 14.0, 36.0);
  // Lines of text that lean by 45 degrees need 17 pixels along the axis not to touch.
  layout.turn = column_label + 6 <= layout.cell ? 0 : layout.cell >= 17 ? 45 : 90;
  const double title = panel.title.empty() ? 0 : 28;
  layout.left = kAxisName + row_label + 10;
  layout.top =
      title + kAxisName + (layout.turn == 0 ? 22 : column_label * (layout.turn == 45 ? kSlant : 1) + 14);
  double right = 0;  // where the labels of the columns end
  for (std::size_t j = 0; layout.turn == 45 && j < layout.keys.size(); ++j) {
    const double start = (static_cast<double>(j) + 0.5) * layout.cell;
    right = std::max(right, start + TextWidth(layout.keys[j]) * kSlant + 10);
  }
  layout.width = layout.left + std::max(columns * layout.cell, right);
  layout.width = std::max(layout.width, 9.2 * DisplayWidth(ShownText(panel.title)));
  layout.height = layout.top + static_cast<double>(panel.queries.size()) * layout.cell;
  return layout;
}

std::string CellMarkup(const AttentionPanel& panel, std::size_t index, double x, double y, double size,
                       const Range& range) {
  switch (CellKind(panel, index)) {
    case Cell::kMasked:
      return "<circle class=\"masked\" cx=\"" + At(x + size / 2) + "\" cy=\"" + At(y + size / 2) +
             "\" r=\"1.6\" fill=\"" + kMasked + "\"/>\n";
    case Cell::kNotFinite:
      return "<rect class=\"nan\" x=\"" + At(x) + "\" y=\"" + At(y) + "\" width=\"" + At(size) +
             "\" height=\"" + At(size) + "\" fill=\"url(#regard-hatch)\" stroke=\"" + kAlarm + "\"/>\n";
    case Cell::kWeight:
      break;
  }
  const Rgb color = RampColor(kLightRamp, range.Place(panel.weights[index]));
  const std::uint32_t packed = static_cast<std::uint32_t>(color.red << 16 | color.green << 8 | color.blue);
  return "<rect class=\"cell\" x=\"" + At(x) + "\" y=\"" + At(y) + "\" width=\"" + At(size) + "\" height=\"" +
         At(size) + "\" rx=\"2\" fill=\"" + HexColor(packed) + "\"/>\n";
}

std::string LabelMarkup(const Layout& layout) {
  std::string markup;
  for (std::size_t j = 0; j < layout.keys.size(); ++j) {
    const double x = layout.left + (static_cast<double>(j) + 0.5) * layout.cell;
    if (layout.turn == 0) {
      markup += Text(x, layout.top - 8, "text-anchor=\"middle\"", layout.keys[j]);
    } else {
      const double start = x + 4, y = layout.top - 6;
      const std::string turn = "rotate(-" + std::to_string(layout.turn) + " " + At(start) + " " + At(y) + ")";
      markup += Text(start, y, "transform=\"" + turn + "\"", layout.keys[j]);
    }
  }
  for (std::size_t i = 0; i < layout.queries.size(); ++i) {
    const double y = layout.top + (static_cast<double>(i) + 0.5) * layout.cell + 4;
    markup += Text(layout.left - 7, y, "text-anchor=\"end\"", layout.queries[i]);
  }
  return markup;
}

std::string PanelMarkup(const AttentionDocument& document, const AttentionPanel& panel, const Layout& layout,
                        const Range& range) {
  std::string markup;
  if (!panel.title.empty()) {
    markup += Text(0, 12, "font-size=\"14\" font-weight=\"600\"", ShownText(panel.title));
  }
  const double middle = layout.left + static_cast<double>(panel.keys.size()) * layout.cell / 2;
  const std::string soft = std::string("fill=\"") + kSoft + "\" font-size=\"11\" text-anchor=\"middle\"";
  if (!document.key_axis.empty()) {
    markup += Text(middle, (panel.title.empty() ? 0 : 28) + 11, soft, ShownText(document.key_axis));
  }
  if (!document.query_axis.empty()) {
    const double y = (layout.top + layout.height) / 2;
    markup +=
        Text(11, y, soft + " transform=\"rotate(-90 11 " + At(y) + ")\"", ShownText(document.query_axis));
  }
  markup += LabelMarkup(layout);
  const std::size_t columns = panel.keys.size();
  for (std::size_t i = 0; i < panel.weights.size(); ++i) {
    const std::size_t row = i / columns, column = i % columns;
    const double x = layout.left + static_cast<double>(column) * layout.cell;
    const double y = layout.top + static_cast<double>(row) * layout.cell;
    markup += CellMarkup(panel, i, x + 0.5, y + 0.5, layout.cell - 1, range);
  }
  return markup;
}

// 280 pixels wide, 30 high
std::string ColorBarMarkup(const Range& range, bool several) {
  std::string markup = "<rect width=\"280\" height=\"10\" rx=\"3\" fill=\"url(#regard-ramp)\"/>\n";
  const std::string soft = std::string("fill=\"") + kSoft + "\" font-size=\"11\"";
  markup += Text(0, 24, soft, Number(range.low));
  markup += Text(140, 24, soft + " text-anchor=\"middle\"", several ? "weight, one range for all" : "weight");
  markup += Text(280, 24, soft + " text-anchor=\"end\"", Number(range.high));
  return markup;
}

std::string Definitions() {
  std::string markup = "<defs><linearGradient id=\"regard-ramp\">";
  for (std::size_t i = 0; i < kLightRamp.size(); ++i) {
    markup += "<stop offset=\"" + Number(static_cast<double>(i) / (kLightRamp.size() - 1)) +
              "\" stop-color=\"" + HexColor(kLightRamp[i]) + "\"/>";
  }
  markup += "</linearGradient><pattern id=\"regard-hatch\" width=\"5\" height=\"5\" ";
  markup += "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><path d=\"M0,0V5\" stroke=\"";
  markup += std::string(kAlarm) + "\" stroke-width=\"2.4\"/></pattern></defs>\n";
  return markup;
}

std::string Group(double x, double y, const std::string& content) {
  return "<g transform=\"translate(" + At(x) + " " + At(y) + ")\">\n" + content + "</g>\n";
}

// What the cells that are not weights mean, where there are any
std::string LegendMarkup(const AttentionDocument& document) {
  std::string markup;
  double x = 312;
  const std::string soft = std::string("fill=\"") + kSoft + "\" font-size=\"11\"";
  if (Has(document, Cell::kMasked)) {
    markup += "<circle cx=\"" + At(x) + "\" cy=\"5\" r=\"2\" fill=\"" + kMasked + "\"/>\n";
    markup += Text(x + 8, 9, soft, "masked");
    x += 72;
  }
  if (Has(document, Cell::kNotFinite)) {
    markup += "<rect x=\"" + At(x) + "\" width=\"11\" height=\"11\" fill=\"url(#regard-hatch)\" stroke=\"" +
              kAlarm + "\"/>\n";
    markup += Text(x + 18, 9, soft, "not a number");
  }
  return markup;
}

}  // namespace

std::string SvgDocument(const AttentionDocument& document) {
  Validate(document);
  const Range range = SharedRange(document);
  std::string body;
  double x = kMargin, y = kMargin, line = 0, width = 2 * kMargin + 440;
  if (!document.title.empty()) {
    const std::string title = ShownText(document.title);
    body += Text(x, y + 14, "font-size=\"20\" font-weight=\"650\"", title);
    width = std::max(width, 2 * kMargin + 11.0 * DisplayWidth(title));
    y += 40;
  }
  std::int64_t in_line = 0;
  for (const AttentionPanel& panel : document.panels) {
    const Layout layout = LayoutOf(panel);
    const bool full = document.columns > 0 ? in_line == document.columns : x + layout.width > kRowWidth;
    if (in_line > 0 && full) {
      in_line = 0;
      x = kMargin;
      y += line + kGap;
      line = 0;
    }
    body += Group(x, y, PanelMarkup(document, panel, layout, range));
    width = std::max(width, x + layout.width + kMargin);
    line = std::max(line, layout.height);
    ++in_line;
    x += layout.width + kGap;
  }
  y += line + kGap;
  body += Group(kMargin, y, ColorBarMarkup(range, document.panels.size() > 1) + LegendMarkup(document));
  const double height = y + 30 + kMargin;

  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + At(width) + "\" height=\"" + At(height) +
         "\" viewBox=\"0 0 " + At(width) + " " + At(height) + "\" font-family=\"Inter, 'Segoe UI', Roboto, " +
         "'Noto Sans', 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"" + kInk +
         "\" xml:space=\"preserve\">\n" + Definitions() +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + body + "</svg>\n";
}

}  // namespace regard::view
