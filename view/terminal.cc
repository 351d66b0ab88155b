#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "view/attention_view.h"
#include "view/color.h"
#include "view/token_text.h"

namespace regard::view {
namespace {

constexpr int kCellWidth = 2, kNarrowest = 40, kLongestColumnLabel = 16;
constexpr int kValueWidth = 7;  // " 0.123 "
constexpr std::string_view kShades = " .:-=+*#%@";
constexpr char kReset[] = "\x1b[0m";

// A colour of the 6 x 6 x 6 cube (16..231)
int CubeColor(const Rgb& color) {
  const auto level = [](int value) { return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40; };
  return 16 + 36 * level(color.red) + 6 * level(color.green) + level(color.blue);
}

std::string Background(const Rgb& color, TerminalColor capability) {
  char code[32];
  if (capability == TerminalColor::kTrueColor) {
    std::snprintf(code, sizeof code, "\x1b[48;2;%d;%d;%dm", color.red, color.green, color.blue);
  } else {
    std::snprintf(code, sizeof code, "\x1b[48;5;%dm", CubeColor(color));
  }
  return code;
}

std::string Swatch(float place, TerminalColor capability) {
  if (capability != TerminalColor::kNone) {
    return Background(RampColor(kDarkRamp, place), capability) + "  " + kReset;
  }
  const auto shade = static_cast<std::size_t>(std::lround(place * static_cast<float>(kShades.size() - 1)));
  return std::string(kCellWidth, kShades[shade]);
}

// What stands for a cell that is no weight
std::string Mark(Cell cell, TerminalColor capability) {
  const bool plain = capability == TerminalColor::kNone;
  if (cell == Cell::kMasked) return plain ? "~~" : "\x1b[2m··\x1b[0m";
  return plain ? "??" : "\x1b[1;37;41m??\x1b[0m";
}

std::string CellText(const AttentionPanel& panel, std::size_t index, const Range& range,
                     TerminalColor capability) {
  const Cell cell = CellKind(panel, index);
  if (cell != Cell::kWeight) return Mark(cell, capability);
  return Swatch(range.Place(panel.weights[index]), capability);
}

std::string Padded(const std::string& text, int width, bool right) {
  const std::string space(static_cast<std::size_t>(std::max(0, width - DisplayWidth(text))), ' ');
  return right ? space + text : text + space;
}

std::string Trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Tokens written downwards, one column of cells each, ending on the line above the matrix.
std::string ColumnLabels(const AttentionPanel& panel, std::size_t first, std::size_t last, int indent) {
  std::vector<std::vector<Grapheme>> labels;
  std::size_t height = 0;
  for (std::size_t j = first; j < last; ++j) {
    std::vector<Grapheme> label = Graphemes(ShownText(panel.keys[j]));
    if (label.size() > kLongestColumnLabel) {
      label.resize(kLongestColumnLabel - 1);
      label.push_back({"…", 1});
    }
    height = std::max(height, label.size());
    labels.push_back(std::move(label));
  }
  std::string text;
  for (std::size_t row = 0; row < height; ++row) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (const std::vector<Grapheme>& label : labels) {
      const std::size_t above = height - label.size();
      if (row < above) {
        line += "  ";
      } else {
        const Grapheme& letter = label[row - above];
        line +=
            letter.text + std::string(static_cast<std::size_t>(std::max(0, kCellWidth - letter.width)), ' ');
      }
    }
    text += Trimmed(line) + "\n";
  }
  return text;
}

// The index of the largest weight of a row, or -1 where it has none.
std::ptrdiff_t LargestKey(const AttentionPanel& panel, std::size_t row) {
  std::ptrdiff_t best = -1;
  const std::size_t columns = panel.keys.size();
  for (std::size_t j = 0; j < columns; ++j) {
    const std::size_t index = row * columns + j;
    if (CellKind(panel, index) != Cell::kWeight) continue;
    if (best < 0 || panel.weights[index] > panel.weights[row * columns + static_cast<std::size_t>(best)]) {
      best = static_cast<std::ptrdiff_t>(j);
    }
  }
  return best;
}

// At most 7 columns: "0.123", "1e-05"
std::string Number(float value) {
  const double size = std::abs(static_cast<double>(value));
  char text[32];
  std::snprintf(text, sizeof text, size == 0 || (size >= 0.001 && size < 100) ? "%.3f" : "%.0e",
                static_cast<double>(value));
  return text;
}

// Keys first..last of a panel, all its rows.
std::string Block(const AttentionPanel& panel, std::size_t first, std::size_t last, int label_width,
                  int key_width, const Range& range, TerminalColor color) {
  std::string text = ColumnLabels(panel, first, last, label_width + 1);
  const std::size_t columns = panel.keys.size();
  for (std::size_t i = 0; i < panel.queries.size(); ++i) {
    text += Padded(Shorten(ShownText(panel.queries[i]), label_width), label_width, true) + " ";
    for (std::size_t j = first; j < last; ++j) text += CellText(panel, i * columns + j, range, color);
    const std::ptrdiff_t best = LargestKey(panel, i);
    if (best >= static_cast<std::ptrdiff_t>(first) && best < static_cast<std::ptrdiff_t>(last)) {
      const auto key = static_cast<std::size_t>(best);
      text += " ";
      text += Padded(Number(panel.weights[i * columns + key]), kValueWidth - 2, true);
      text += " ";
      text += Shorten(ShownText(panel.keys[key]), key_width);
    }
    text += "\n";
  }
  return text;
}

std::string PanelText(const AttentionPanel& panel, int width, const Range& range, TerminalColor color) {
  std::string text;
  if (!panel.title.empty()) text += Shorten(ShownText(panel.title), width) + "\n";
  if (panel.queries.empty() || panel.keys.empty()) {
    return text + "no weights: " + std::to_string(panel.queries.size()) + " by " +
           std::to_string(panel.keys.size()) + "\n";
  }
  int label_width = 1;
  for (const std::string& token : panel.queries) {
    label_width = std::max(label_width, DisplayWidth(ShownText(token)));
  }
  label_width = std::min(label_width, width / 4);
  const int key_width = std::min(14, width / 8);
  const int cells = width - label_width - 1 - (kValueWidth + key_width);
  const auto step = static_cast<std::size_t>(cells / kCellWidth);
  for (std::size_t first = 0; first < panel.keys.size(); first += step) {
    if (first > 0) text += "\n";
    text +=
        Block(panel, first, std::min(first + step, panel.keys.size()), label_width, key_width, range, color);
  }
  return text;
}

std::string Legend(const AttentionDocument& document, const Range& range, TerminalColor color) {
  std::string text = Number(range.low) + " ";
  for (int i = 0; i < 10; ++i) text += Swatch(static_cast<float>(i) / 9, color);
  text += " ";
  text += Number(range.high);
  if (Has(document, Cell::kMasked)) text += "   " + Mark(Cell::kMasked, color) + " masked";
  if (Has(document, Cell::kNotFinite)) text += "   " + Mark(Cell::kNotFinite, color) + " not a number";
  return text + "\n";
}

}  // namespace

TerminalColor DetectTerminalColor() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  const std::string_view term = variable("TERM");
  if (isatty(STDOUT_FILENO) == 0 || term.empty() || term == "dumb" || !variable("NO_COLOR").empty()) {
    return TerminalColor::kNone;
  }
  const std::string_view color = variable("COLORTERM");
  return color == "truecolor" || color == "24bit" ? TerminalColor::kTrueColor : TerminalColor::k256;
}

std::string TerminalText(const AttentionDocument& document, int width, TerminalColor color) {
  Validate(document);
  width = std::max(width, kNarrowest);
  const Range range = SharedRange(document);
  std::string text;
  if (!document.title.empty()) text += Shorten(ShownText(document.title), width) + "\n";
  text += Shorten("rows: " + ShownText(document.query_axis) + ", columns: " + ShownText(document.key_axis),
                  width);
  text += "\n\n";
  for (const AttentionPanel& panel : document.panels) text += PanelText(panel, width, range, color) + "\n";
  return text + Legend(document, range, color);
}

}  // namespace regard::view
