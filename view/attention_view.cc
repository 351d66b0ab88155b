#include "view/attention_view.h"

#include <string>

#include "engine/base/error.h"
#include "view/token_text.h"

namespace regard::view {
namespace {

std::string PanelName(const AttentionDocument& document, std::size_t index) {
  std::string name = "panel " + std::to_string(index + 1) + " of " + std::to_string(document.panels.size());
  const std::string& title = document.panels[index].title;
  if (!title.empty()) name += " (\"" + ShownText(title) + "\")";
  return name;
}

std::string ShapeText(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// The labels, or numbers where there are none.
std::vector<std::string> Labels(const std::vector<std::string>& given, std::int64_t count,
                                const std::string& what, std::span<const std::int64_t> shape) {
  if (given.empty()) {
    std::vector<std::string> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
    return numbers;
  }
  if (static_cast<std::int64_t>(given.size()) != count) {
    throw Error(std::to_string(given.size()) + " " + what + " labels for " + std::to_string(count) + " " +
                what + " weights (weights of shape " + ShapeText(shape) + ")");
  }
  return given;
}

// a * b, or Error where it does not fit.
std::int64_t Product(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) {
      throw Error("attention weights of shape " + ShapeText(shape) + ": no such shape");
    }
  }
  return product;
}

std::string MatrixTitle(const std::string& title, std::int64_t batches, std::int64_t heads,
                        std::int64_t index) {
  std::string numbers;
  if (batches > 1) numbers = "batch " + std::to_string(index / heads);
  if (heads > 1) {
    numbers += std::string(numbers.empty() ? "" : ", ") + "head " + std::to_string(index % heads);
  }
  if (title.empty() || numbers.empty()) return title + numbers;
  return title + " · " + numbers;
}

}  // namespace

std::vector<AttentionPanel> PanelsFromWeights(const std::string& title, std::span<const float> weights,
                                              std::span<const std::int64_t> shape,
                                              const std::vector<std::string>& queries,
                                              const std::vector<std::string>& keys) {
  const std::size_t rank = shape.size();
  if (rank < 1 || rank > 4) {
    throw Error("attention weights of shape " + ShapeText(shape) + ": expected 1 to 4 dimensions, found " +
                std::to_string(rank));
  }
  const std::int64_t total = Product(shape);
  if (static_cast<std::int64_t>(weights.size()) != total) {
    throw Error("attention weights of shape " + ShapeText(shape) + " need " + std::to_string(total) +
                " numbers, found " + std::to_string(weights.size()));
  }
  const std::int64_t columns = shape[rank - 1];
  const std::int64_t rows = rank > 1 ? shape[rank - 2] : 1;
  const std::int64_t heads = rank > 2 ? shape[rank - 3] : 1;
  const std::int64_t batches = rank > 3 ? shape[0] : 1;
  const std::vector<std::string> row_labels = Labels(queries, rows, "query", shape);
  const std::vector<std::string> column_labels = Labels(keys, columns, "key", shape);

  std::vector<AttentionPanel> panels;
  const std::size_t size = static_cast<std::size_t>(rows * columns);
  for (std::int64_t i = 0; i < batches * heads; ++i) {
    const std::span<const float> part = weights.subspan(static_cast<std::size_t>(i) * size, size);
    panels.push_back(
        {MatrixTitle(title, batches, heads, i), row_labels, column_labels, {part.begin(), part.end()}, {}});
  }
  return panels;
}

void Validate(const AttentionDocument& document) {
  if (document.panels.empty()) {
    throw Error("attention document \"" + ShownText(document.title) + "\": no panel, expected at least one");
  }
  for (std::size_t i = 0; i < document.panels.size(); ++i) {
    const AttentionPanel& panel = document.panels[i];
    const std::size_t rows = panel.queries.size(), columns = panel.keys.size();
    if (panel.weights.size() != rows * columns) {
      throw Error(PanelName(document, i) + ": " + std::to_string(rows) + " query labels and " +
                  std::to_string(columns) + " key labels for " + std::to_string(panel.weights.size()) +
                  " weights, expected " + std::to_string(rows * columns) + " weights");
    }
    if (!panel.masked.empty() && panel.masked.size() != panel.weights.size()) {
      throw Error(PanelName(document, i) + ": a mask of " + std::to_string(panel.masked.size()) +
                  " cells for " + std::to_string(panel.weights.size()) + " weights");
    }
  }
}

AttentionDocument GridFromWeights(const std::string& title, std::span<const float> weights,
                                  std::span<const std::int64_t, 4> shape, const GridLabels& labels) {
  AttentionDocument document;
  document.title = title;
  document.panels = PanelsFromWeights("", weights, shape, labels.queries, labels.keys);
  document.columns = shape[1];
  const std::vector<std::string> rows = Labels(labels.row_titles, shape[0], "row", shape);
  const std::vector<std::string> columns = Labels(labels.column_titles, shape[1], "column", shape);
  for (std::size_t i = 0; i < document.panels.size(); ++i) {
    const std::string &row = rows[i / columns.size()], &column = columns[i % columns.size()];
    std::string& panel = document.panels[i].title;
    panel = row;
    if (!row.empty() && !column.empty()) panel += ", ";
    panel += column;
  }
  return document;
}

}  // namespace regard::view
