#include "data/tokenizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/file.h"
#include "data/tokenizer_kinds.h"
#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::data {

NLOHMANN_JSON_SERIALIZE_ENUM(TokenizerKind, {{TokenizerKind::kWord, "word"},
                                             {TokenizerKind::kCharacters, "characters"},
                                             {TokenizerKind::kBytes, "bytes"},
                                             {TokenizerKind::kSentencePiece, "sentencepiece"}})
NLOHMANN_JSON_SERIALIZE_ENUM(WordSplitting, {{WordSplitting::kUnicode, "unicode"},
                                             {WordSplitting::kSpaces, "spaces"},
                                             {WordSplitting::kBook, "book"}})
NLOHMANN_JSON_SERIALIZE_ENUM(SentencePieceModel,
                             {{SentencePieceModel::kUnigram, "unigram"}, {SentencePieceModel::kBpe, "bpe"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TokenizerOptions, kind, lower_case, nfc, locale, min_count, max_size,
                                   splitting, split_digits, model, vocabulary_size, character_coverage,
                                   byte_fallback, space_before)

namespace {

constexpr const char* kFormat = "regard tokenizer";
constexpr int kVersion = 1;

void CheckOptions(const TokenizerOptions& options) {
  const auto fail = [](const std::string& what) { throw UsageError("tokeniser: " + what); };
  if (options.min_count < 1) fail(fmt::format("min_count {}; expected 1 or more", options.min_count));
  if (options.max_size != 0 && options.max_size <= kReserved) {
    fail(fmt::format("max_size {}; expected 0 (no limit) or more than {}", options.max_size, kReserved));
  }
  if (options.vocabulary_size <= kReserved) {
    fail(fmt::format("vocabulary_size {}; expected more than {}", options.vocabulary_size, kReserved));
  }
  if (!(options.character_coverage > 0.9 && options.character_coverage <= 1)) {
    fail(fmt::format("character_coverage {}; expected more than 0.9, at most 1", options.character_coverage));
  }
  Words("", options.locale);  // throws for a locale that is none
}

nlohmann::json ReadTokenizerJson(const std::string& path) {
  nlohmann::json json = nlohmann::json::parse(ReadFile(path), nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    throw Error(fmt::format("{}: not a whole tokeniser file (its JSON does not parse)", path));
  }
  if (json.value("format", nlohmann::json()) != kFormat) {
    throw Error(fmt::format("{}: not a tokeniser file; expected \"format\": \"{}\"", path, kFormat));
  }
  const nlohmann::json version = json.value("version", nlohmann::json());
  if (version != kVersion) {
    throw Error(fmt::format("{}: version {}; expected {}", path, version.dump(), kVersion));
  }
  return json;
}

}  // namespace

std::vector<std::int64_t> Tokenizer::Encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  for (const Piece& piece : Pieces(text)) ids.push_back(piece.id);
  return ids;
}

std::vector<std::string> Tokenizer::PieceTexts(const std::vector<std::int64_t>& ids) const {
  std::vector<std::string> texts;
  for (const std::int64_t id : ids) texts.push_back(PieceText(id));
  return texts;
}

std::string TokenizerPath(const std::string& dir, const std::string& name) {
  return dir + "/" + name + ".json";
}

nlohmann::json TokenizerHeader(const TokenizerOptions& options, std::int64_t size) {
  return {{"format", kFormat},
          {"version", kVersion},
          {"kind", options.kind},
          {"options", options},
          {"size", size}};
}

void WriteTokenizerJson(const std::string& path, const nlohmann::json& json) {
  WriteFileAtomically(path, json.dump(1) + "\n");
}

std::unique_ptr<Tokenizer> Tokenizer::Load(const std::string& dir, const std::string& name) {
  const std::string path = TokenizerPath(dir, name);
  const nlohmann::json json = ReadTokenizerJson(path);
  std::unique_ptr<Tokenizer> tokenizer;
  std::int64_t size = 0;
  try {
    // What was saved before an option came has its default.
    nlohmann::json stored = TokenizerOptions{};
    stored.update(json.at("options"));
    const auto options = stored.get<TokenizerOptions>();
    // A name of an enumeration that is not known would read as its first one.
    if (nlohmann::json(options) != stored) {
      throw Error(fmt::format("options {} are not this version's", json.at("options").dump()));
    }
    CheckOptions(options);
    size = json.at("size").get<std::int64_t>();
    tokenizer = options.kind == TokenizerKind::kSentencePiece ? LoadSentencePiece(dir, name, options, json)
                : options.kind == TokenizerKind::kBytes       ? MakeByteTokenizer(options)
                                                              : VocabularyTokenizer::FromJson(options, json);
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: not a tokeniser file: {}", path, error.what()));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
  if (tokenizer->size() != size) {
    throw Error(
        fmt::format("{}: holds {} tokens; expected the {} that it says", path, tokenizer->size(), size));
  }
  return tokenizer;
}

std::unique_ptr<Tokenizer> BuildTokenizer(const std::vector<std::string>& texts,
                                          const TokenizerOptions& options) {
  CheckOptions(options);
  if (options.kind == TokenizerKind::kBytes) return MakeByteTokenizer(options);
  bool any = false;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (const std::size_t at = FindInvalidUtf8(texts[i]); at != std::string_view::npos) {
      throw Error(fmt::format("tokeniser: text {} is not UTF-8 at byte {}", i + 1, at));
    }
    any = any || !IsBlank(texts[i]);
  }
  if (!any) throw Error(fmt::format("tokeniser: no text to build from ({} blank texts)", texts.size()));
  return options.kind == TokenizerKind::kSentencePiece ? BuildSentencePiece(texts, options)
                                                       : VocabularyTokenizer::Build(texts, options);
}

std::string TokenizerKindName(TokenizerKind kind) { return nlohmann::json(kind).get<std::string>(); }

TokenizerKind TokenizerKindFromName(const std::string& name) {
  for (const TokenizerKind kind : {TokenizerKind::kWord, TokenizerKind::kCharacters, TokenizerKind::kBytes,
                                   TokenizerKind::kSentencePiece}) {
    if (TokenizerKindName(kind) == name) return kind;
  }
  throw UsageError(
      fmt::format("tokeniser \"{}\" is not known; expected word, characters, bytes or sentencepiece", name));
}

}  // namespace regard::data
