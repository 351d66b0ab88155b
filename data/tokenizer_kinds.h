// The tokenisers behind data/tokenizer.h, and what their files have in common.
#ifndef REGARD_DATA_TOKENIZER_KINDS_H_
#define REGARD_DATA_TOKENIZER_KINDS_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "data/vocabulary.h"

namespace regard::data {

// DIR/NAME.json: {"format", "version", "kind", "options", "size", ...}.
std::string TokenizerPath(const std::string& dir, const std::string& name);
nlohmann::json TokenizerHeader(const TokenizerOptions& options, std::int64_t size);
void WriteTokenizerJson(const std::string& path, const nlohmann::json& json);

// Words or characters and a vocabulary of them.
class VocabularyTokenizer : public Tokenizer {
 public:
  VocabularyTokenizer(const TokenizerOptions& options, Vocabulary vocabulary);
  static std::unique_ptr<Tokenizer> Build(const std::vector<std::string>& texts,
                                          const TokenizerOptions& options);
  // json: what Save wrote. Throws regard::Error or nlohmann's exceptions.
  static std::unique_ptr<Tokenizer> FromJson(const TokenizerOptions& options, const nlohmann::json& json);

  TokenizerKind kind() const override { return options_.kind; }
  std::int64_t size() const override { return vocabulary_.size(); }
  std::vector<Piece> Pieces(std::string_view text) const override;
  std::string Decode(const std::vector<std::int64_t>& ids) const override;
  std::string Bytes(std::int64_t id, bool first) const override;
  std::string PieceText(std::int64_t id) const override { return vocabulary_.Token(id); }
  void Save(const std::string& dir, const std::string& name) const override;

 private:
  TokenizerOptions options_;
  Vocabulary vocabulary_;
};

// Bytes as they are, well-formed UTF-8 or not: 256 tokens after the reserved ones.
std::unique_ptr<Tokenizer> MakeByteTokenizer(const TokenizerOptions& options);

std::unique_ptr<Tokenizer> BuildSentencePiece(const std::vector<std::string>& texts,
                                              const TokenizerOptions& options);
// json: what Save wrote to DIR/NAME.json; reads DIR/NAME.model.
std::unique_ptr<Tokenizer> LoadSentencePiece(const std::string& dir, const std::string& name,
                                             const TokenizerOptions& options, const nlohmann::json& json);

}  // namespace regard::data

#endif  // REGARD_DATA_TOKENIZER_KINDS_H_
