#include "data/corpus.h"

#include <fmt/format.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "data/file.h"
#include "data/random.h"
#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

constexpr std::size_t kBlock = 1 << 20;  // bytes encoded together, as long as lines are shorter

// Offset after the first n characters; those of the text when it has fewer. *count: how many were passed.
std::size_t AfterCharacters(std::string_view text, std::int64_t n, std::int64_t* count = nullptr) {
  const auto size = static_cast<std::int64_t>(text.size());
  std::int64_t at = 0, passed = 0;
  for (; at < size && passed < n; ++passed) {
    UChar32 c = 0;
    U8_NEXT(text.data(), at, size, c);
  }
  if (count != nullptr) *count = passed;
  return static_cast<std::size_t>(at);
}

std::int64_t CountCharacters(std::string_view text) {
  std::int64_t count = 0;
  AfterCharacters(text, static_cast<std::int64_t>(text.size()), &count);
  return count;
}

// The length of text's first lines: at most kBlock bytes, at least one line.
std::size_t FirstLines(std::string_view text) {
  if (text.size() <= kBlock) return text.size();
  std::size_t end = text.rfind('\n', kBlock - 1);
  if (end == std::string_view::npos) end = text.find('\n', kBlock);
  return end == std::string_view::npos ? text.size() : end + 1;
}

// "U+0065 U+0301": also what cannot be seen has a name.
std::string CodePoints(std::string_view text) {
  std::string names;
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t at = 0; at < size;) {
    UChar32 c = 0;
    U8_NEXT_OR_FFFD(text.data(), at, size, c);
    names += fmt::format("{}U+{:04X}", names.empty() ? "" : " ", c);
  }
  return names;
}

void CheckContext(std::int64_t context) {
  if (context < 1) throw UsageError(fmt::format("context of {} tokens; expected 1 or more", context));
}

}  // namespace

std::string ReadText(const std::string& path, const TextReading& options, std::int64_t* replaced) {
  std::string bytes = ReadFile(path);
  std::int64_t replaced_lines = 0;
  if (!options.raw) {
    std::string text, line;
    text.reserve(bytes.size());
    const bool ends_line = bytes.ends_with('\n');
    std::istringstream in(std::move(bytes));
    LineReader lines{in, path, options.utf8};
    while (lines.Next(&line)) text.append(line) += '\n';
    if (!ends_line && !text.empty()) text.pop_back();
    replaced_lines = lines.replaced;
    bytes = std::move(text);
  }
  if (bytes.empty()) throw Error(fmt::format("{}: empty; expected a text", path));
  if (replaced != nullptr) *replaced = replaced_lines;
  return bytes;
}

TextParts SplitText(std::string_view text, double validation_share) {
  if (!(validation_share >= 0 && validation_share < 1)) {
    throw UsageError(fmt::format("validation share {}; expected 0 or more, below 1", validation_share));
  }
  const auto training = static_cast<std::int64_t>(
      std::floor(static_cast<double>(CountCharacters(text)) * (1 - validation_share)));
  const std::size_t at = AfterCharacters(text, training);
  return {text.substr(0, at), text.substr(at)};
}

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

TextTokens EncodeText(const Tokenizer& tokenizer, std::string_view text) {
  TextTokens tokens;
  std::int64_t first = 0;  // characters of the first token
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = tokenizer.EncodesByLine() ? FirstLines(rest) : rest.size();
    const std::vector<Piece> pieces = tokenizer.Pieces(rest.substr(0, length));
    if (tokens.ids.empty() && !pieces.empty()) first = CountCharacters(rest.substr(0, pieces.front().end));
    for (const Piece& piece : pieces) {
      tokens.ids.push_back(piece.id);
      tokens.unknown += piece.id == kUnk;
    }
    rest.remove_prefix(length);
  }
  tokens.characters = CountCharacters(text) - first;
  return tokens;
}

std::vector<std::int64_t> EncodePrompt(const Tokenizer& tokenizer, std::string_view prompt) {
  std::vector<std::int64_t> ids;
  for (const Piece& piece : tokenizer.Pieces(prompt)) {
    if (piece.id == kUnk) {
      throw Error(fmt::format("character {} of the prompt, \"{}\" ({}), is not in the vocabulary",
                              CountCharacters(prompt.substr(0, piece.begin)) + 1, piece.text,
                              CodePoints(piece.text)));
    }
    ids.push_back(piece.id);
  }
  return ids;
}

std::vector<Window> DrawWindows(std::int64_t count, const WindowOptions& options, std::int64_t batch) {
  CheckContext(options.context);
  if (options.batch_size < 1)
    throw UsageError(fmt::format("batches of {} windows; expected 1 or more", options.batch_size));
  if (count <= options.context) {
    throw Error(
        fmt::format("a text of {} tokens; expected more than the context of {}", count, options.context));
  }
  // Each (seed, epoch, batch) has a stream of its own: nothing is carried from batch to batch.
  Random random(Mix(Mix(options.seed) ^ Mix(~static_cast<std::uint64_t>(options.epoch))) ^
                Mix(static_cast<std::uint64_t>(batch)));
  std::vector<Window> windows;
  for (std::int64_t i = 0; i < options.batch_size; ++i) {
    const std::uint64_t begin = random.Below(static_cast<std::uint64_t>(count - options.context));
    windows.push_back({static_cast<std::int64_t>(begin), options.context});
  }
  return windows;
}

std::vector<Window> CoverWindows(std::int64_t count, std::int64_t context) {
  CheckContext(context);
  std::vector<Window> windows;
  for (std::int64_t begin = 0; begin + 1 < count; begin += context)
    windows.push_back({begin, std::min(context, count - 1 - begin)});
  return windows;
}

}  // namespace regard::data
