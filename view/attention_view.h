// Attention weights as a picture: a page for the browser, an SVG, blocks in a terminal.
//
// A panel is one matrix of weights with the tokens of its rows (queries) and columns (keys). The panels of a
// document share one colour range: [min(0, smallest), largest] over the cells that are finite and not masked.
// A cell that is not finite, or masked, is drawn as such and never coloured.
// Tokens are any bytes; they are shown verbatim, with white space at their ends, control characters and bytes
// that are not UTF-8 made visible ("·the", "↵", "∅" for the empty token, "<0xF0>").
#ifndef REGARD_VIEW_ATTENTION_VIEW_H_
#define REGARD_VIEW_ATTENTION_VIEW_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace regard::view {

struct AttentionPanel {
  std::string title;                 // may be empty
  std::vector<std::string> queries;  // the rows, L of them: target tokens, say
  std::vector<std::string> keys;     // the columns, S of them: source tokens, say
  std::vector<float> weights;        // [L, S], row after row
  std::vector<std::uint8_t> masked;  // [L, S], not 0: the pair was masked; or empty: none was
};

struct AttentionDocument {
  std::string title;
  std::string query_axis = "target";  // what a row stands for
  std::string key_axis = "source";    // what a column stands for
  std::vector<AttentionPanel> panels;
  std::int64_t columns = 0;  // panels side by side; 0: as many as there is room for
};

// Panels of weights of rank 1 [S], 2 [L, S], 3 [H, L, S] or 4 [B, H, L, S], one for each matrix, titled
// `title` and, where there are several, the numbers of batch and head from 0. Every matrix has the same
// tokens. An empty `queries` or `keys` numbers the rows or columns from 0. Throws Error when the rank, or a
// number of labels or weights, does not fit the shape.
std::vector<AttentionPanel> PanelsFromWeights(const std::string& title, std::span<const float> weights,
                                              std::span<const std::int64_t> shape,
                                              const std::vector<std::string>& queries,
                                              const std::vector<std::string>& keys);

// A grid of weights [rows, columns, L, S], layers by heads for example: a panel for each matrix, titled
// "ROW, COLUMN", `columns` of them side by side. Labels as in PanelsFromWeights; an empty `row_titles` or
// `column_titles` numbers them from 0. Throws Error where something does not fit the shape.
struct GridLabels {
  std::vector<std::string> row_titles, column_titles;  // of the grid
  std::vector<std::string> queries, keys;              // of every matrix
};
AttentionDocument GridFromWeights(const std::string& title, std::span<const float> weights,
                                  std::span<const std::int64_t, 4> shape, const GridLabels& labels);

// Throws Error naming the panel and both counts where labels, weights and mask do not fit together, or when
// there is no panel. Everything below calls it.
void Validate(const AttentionDocument& document);

// One HTML file that needs no other and makes no request.
std::string PageHtml(const AttentionDocument& document);

// Writes PageHtml to `path`. Throws Error naming the path and the reason when it cannot.
void WritePage(const AttentionDocument& document, const std::string& path);

// One SVG with all panels and their colour bar.
std::string SvgDocument(const AttentionDocument& document);

enum class TerminalColor { kNone, k256, kTrueColor };

// What the terminal on standard output can show: kNone when it is not a terminal, TERM is "dumb" or NO_COLOR
// is set; kTrueColor when COLORTERM says so.
TerminalColor DetectTerminalColor();

// All panels as text of at most `width` columns (at least 40 are used); wide matrices continue in further
// blocks. Each row ends, in the block that holds it, with its largest weight and that weight's key.
std::string TerminalText(const AttentionDocument& document, int width, TerminalColor color);

}  // namespace regard::view

#endif  // REGARD_VIEW_ATTENTION_VIEW_H_
