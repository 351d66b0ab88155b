#include <algorithm>
#include <map>
#include <utility>

#include "data/tokenizer_kinds.h"
#include "data/unicode.h"

namespace regard::data {
namespace {

// Segments between spaces (and tabs). In the book's way one also starts at each of , . ! ?
std::vector<Segment> SplitAtSpaces(std::string_view text, bool at_punctuation) {
  std::vector<Segment> segments;
  bool open = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' || text[i] == '\t') {
      open = false;
      continue;
    }
    const bool starts = at_punctuation && std::string_view(",.!?").find(text[i]) != std::string_view::npos;
    if (!open || starts) segments.push_back({i, i});
    open = true;
    segments.back().end = i + 1;
  }
  return segments;
}

// Every decimal digit on its own, what is between digits together.
std::vector<Segment> SplitDigits(std::string_view text, const std::vector<Segment>& segments) {
  std::vector<Segment> out;
  for (const Segment& segment : segments) {
    bool open = false;
    for (std::size_t i = segment.begin, next = i; i < segment.end; i = next) {
      const bool digit = IsDigitAt(text, i, &next);
      if (digit || !open) out.push_back({i, next});
      open = !digit;
      out.back().end = next;
    }
  }
  return out;
}

TrackedText Prepare(std::string_view text, const TokenizerOptions& options) {
  TrackedText tracked(text);
  if (options.nfc) tracked.Normalize();
  if (options.kind == TokenizerKind::kWord && options.splitting == WordSplitting::kBook) {
    tracked.NoBreakSpacesToSpaces();
  }
  if (options.lower_case) tracked.LowerCase(options.locale);
  return tracked;
}

std::vector<Segment> Split(std::string_view text, const TokenizerOptions& options) {
  if (options.kind == TokenizerKind::kCharacters) return Graphemes(text);
  std::vector<Segment> segments = options.splitting == WordSplitting::kUnicode
                                      ? Words(text, options.locale)
                                      : SplitAtSpaces(text, options.splitting == WordSplitting::kBook);
  return options.split_digits ? SplitDigits(text, segments) : segments;
}

}  // namespace

VocabularyTokenizer::VocabularyTokenizer(const TokenizerOptions& options, Vocabulary vocabulary)
    : options_(options), vocabulary_(std::move(vocabulary)) {}

std::unique_ptr<Tokenizer> VocabularyTokenizer::Build(const std::vector<std::string>& texts,
                                                      const TokenizerOptions& options) {
  std::map<std::string, std::int64_t> counts;
  for (const std::string& text : texts) {
    const TrackedText tracked = Prepare(text, options);
    for (const Segment& segment : Split(tracked.text, options)) {
      ++counts[tracked.text.substr(segment.begin, segment.end - segment.begin)];
    }
  }
  return std::make_unique<VocabularyTokenizer>(
      options, Vocabulary::FromCounts(counts, options.min_count, options.max_size));
}

std::unique_ptr<Tokenizer> VocabularyTokenizer::FromJson(const TokenizerOptions& options,
                                                         const nlohmann::json& json) {
  return std::make_unique<VocabularyTokenizer>(options,
                                               Vocabulary(json.at("tokens").get<std::vector<std::string>>()));
}

std::vector<Piece> VocabularyTokenizer::Pieces(std::string_view text) const {
  const TrackedText tracked = Prepare(text, options_);
  std::vector<Piece> pieces;
  for (const Segment& segment : Split(tracked.text, options_)) {
    Piece& piece = pieces.emplace_back();
    piece.text = tracked.text.substr(segment.begin, segment.end - segment.begin);
    piece.begin = tracked.begin[segment.begin];
    piece.end = tracked.end[segment.end - 1];
    piece.id = vocabulary_.Id(piece.text);
    if (piece.id == kUnk) piece.text = ReplaceInvalidUtf8(piece.text);
  }
  return pieces;
}

std::string VocabularyTokenizer::Decode(const std::vector<std::int64_t>& ids) const {
  std::string text;
  for (const std::int64_t id : ids) text += Bytes(id, text.empty());
  return text;
}

std::string VocabularyTokenizer::Bytes(std::int64_t id, bool first) const {
  const std::string& token = vocabulary_.Token(id);
  if (id == kPad || id == kBos || id == kEos) return "";
  return options_.kind == TokenizerKind::kWord && !first ? ' ' + token : token;
}

void VocabularyTokenizer::Save(const std::string& dir, const std::string& name) const {
  nlohmann::json json = TokenizerHeader(options_, size());
  json["tokens"] = vocabulary_.tokens();
  WriteTokenizerJson(TokenizerPath(dir, name), json);
}

}  // namespace regard::data
