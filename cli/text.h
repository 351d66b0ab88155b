// Text for people: near words, wrapped paragraphs, plural nouns.
#ifndef REGARD_CLI_TEXT_H_
#define REGARD_CLI_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regard::cli {

// The candidate that `word` is most likely a misspelling of, or "" when none is near: at most a third of the
// letters inserted, deleted, replaced or swapped (Damerau 1964), or a candidate that starts with it.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

// " (did you mean X?)", or "" when nothing is near.
std::string Suggestion(std::string_view word, const std::vector<std::string>& candidates);

// Lines of at most `width` columns, broken at spaces; a line end in `text` is kept. Never empty.
std::vector<std::string> Wrap(std::string_view text, std::size_t width);

// Columns that UTF-8 text takes on a terminal: marks take none, East Asian wide characters two.
std::size_t Columns(std::string_view text);

// `text` filled with spaces to `columns`.
std::string Pad(std::string_view text, std::size_t columns);

// "12,345"
std::string Grouped(std::int64_t number);

// "1 pair", "12,345 pairs"
std::string Count(std::int64_t number, std::string_view noun);

// "a, b or c"
std::string Listed(const std::vector<std::string>& words, std::string_view last = "or");

// "0.4 s", "12 s", "3 min 20 s", "1 h 5 min"
std::string Duration(double seconds);

}  // namespace regard::cli

#endif  // REGARD_CLI_TEXT_H_
