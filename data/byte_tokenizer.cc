#include <fmt/format.h>

#include "data/tokenizer_kinds.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(const TokenizerOptions& options) : options_(options) {}

  TokenizerKind kind() const override { return TokenizerKind::kBytes; }
  std::int64_t size() const override { return kReserved + 256; }

  std::vector<Piece> Pieces(std::string_view text) const override {
    std::vector<Piece> pieces(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::int64_t id = kReserved + static_cast<unsigned char>(text[i]);
      pieces[i] = {PieceText(id), i, i + 1, id};
    }
    return pieces;
  }

  std::string Decode(const std::vector<std::int64_t>& ids) const override {
    std::string text;
    for (const std::int64_t id : ids) text += Bytes(id, text.empty());
    return text;
  }

  std::string Bytes(std::int64_t id, bool) const override {
    if (id < 0 || id >= size()) {
      throw Error(fmt::format("token number {} is not in the vocabulary; expected 0 to {}", id, size() - 1));
    }
    if (id >= kReserved) return std::string(1, static_cast<char>(id - kReserved));
    return id == kUnk ? ReservedToken(kUnk) : "";
  }

  // A byte beyond ASCII is "<0xF0>".
  std::string PieceText(std::int64_t id) const override {
    const std::string byte = Bytes(id, false);
    if (id < kReserved) return ReservedToken(id);
    return id < kReserved + 0x80 ? byte : fmt::format("<0x{:02X}>", id - kReserved);
  }

  void Save(const std::string& dir, const std::string& name) const override {
    WriteTokenizerJson(TokenizerPath(dir, name), TokenizerHeader(options_, size()));
  }

 private:
  TokenizerOptions options_;
};

}  // namespace

std::unique_ptr<Tokenizer> MakeByteTokenizer(const TokenizerOptions& options) {
  return std::make_unique<ByteTokenizer>(options);
}

}  // namespace regard::data
