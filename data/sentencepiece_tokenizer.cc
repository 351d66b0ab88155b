#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <map>
#include <unordered_map>
#include <utility>

#include "data/file.h"
#include "data/tokenizer_kinds.h"
#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // SentencePiece writes a space so: U+2581

// 64-bit FNV-1a: tells a model file that was cut short or changed from the one that was saved.
std::string Checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

TrackedText Prepare(std::string_view text, const TokenizerOptions& options) {
  TrackedText tracked(text);
  if (options.nfc) tracked.Normalize();
  return tracked;
}

class Texts : public sentencepiece::SentenceIterator {
 public:
  explicit Texts(const std::vector<std::string>& texts) : texts_(texts) {}
  bool done() const override { return next_ == texts_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return texts_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& texts_;
  std::size_t next_ = 0;
};

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const TokenizerOptions& options, std::string model)
      : options_(options), model_(std::move(model)) {
    const auto status = processor_.LoadFromSerializedProto(model_);
    if (!status.ok())
      throw Error(fmt::format("the SentencePiece model cannot be used: {}", status.ToString()));
    if (processor_.pad_id() != kPad || processor_.bos_id() != kBos || processor_.eos_id() != kEos ||
        processor_.unk_id() != kUnk) {
      throw Error("the SentencePiece model numbers its reserved tokens in another way");
    }
  }

  TokenizerKind kind() const override { return TokenizerKind::kSentencePiece; }
  std::int64_t size() const override { return processor_.GetPieceSize(); }

  std::vector<Piece> Pieces(std::string_view text) const override {
    const TrackedText tracked = Prepare(text, options_);
    std::vector<Piece> pieces;
    const auto encoded = processor_.EncodeAsImmutableProto(tracked.text);
    for (std::size_t i = 0; i < encoded.pieces_size(); ++i) {
      const auto& from = encoded.pieces(static_cast<int>(i));
      const std::size_t begin = from.begin(), end = from.end();
      Piece& piece = pieces.emplace_back();
      piece.text = ReplaceInvalidUtf8(from.piece());
      piece.begin = begin < tracked.begin.size() ? tracked.begin[begin] : text.size();
      piece.end = end > begin ? tracked.end[end - 1] : piece.begin;
      piece.id = static_cast<std::int64_t>(from.id());
    }
    return pieces;
  }

  std::string Decode(const std::vector<std::int64_t>& ids) const override {
    std::vector<int> kept;
    for (const std::int64_t id : ids) {
      Check(id);
      if (id != kPad && id != kBos && id != kEos) kept.push_back(static_cast<int>(id));
    }
    return processor_.DecodeIds(kept);
  }

  std::string Bytes(std::int64_t id, bool first) const override {
    Check(id);
    if (id == kPad || id == kBos || id == kEos) return "";
    const std::string piece = processor_.IdToPiece(static_cast<int>(id));
    if (processor_.IsByte(static_cast<int>(id))) {  // "<0xF0>"
      return std::string(1, static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16)));
    }
    std::string text;
    for (std::size_t at = 0; at < piece.size();) {
      const bool space = std::string_view(piece).substr(at).starts_with(kSpaceMark);
      text += space ? ' ' : piece[at];
      at += space ? kSpaceMark.size() : 1;
    }
    if (first && options_.space_before && text.starts_with(' ')) text.erase(0, 1);
    return text;
  }

  bool EncodesByLine() const override { return !options_.space_before; }

  std::string PieceText(std::int64_t id) const override {
    Check(id);
    return processor_.IdToPiece(static_cast<int>(id));
  }

  void Save(const std::string& dir, const std::string& name) const override {
    WriteFileAtomically(dir + "/" + name + ".model", model_);
    nlohmann::json json = TokenizerHeader(options_, size());
    json["model_checksum"] = Checksum(model_);
    WriteTokenizerJson(TokenizerPath(dir, name), json);
  }

 private:
  void Check(std::int64_t id) const {
    if (id >= 0 && id < size()) return;
    throw Error(fmt::format("token number {} is not in the vocabulary; expected 0 to {}", id, size() - 1));
  }

  TokenizerOptions options_;
  std::string model_;  // serialized
  sentencepiece::SentencePieceProcessor processor_;
};

std::unordered_map<std::string, std::string> TrainerArguments(const TokenizerOptions& options) {
  const auto yes_no = [](bool yes) { return std::string(yes ? "true" : "false"); };
  return {
      {"model_type", options.model == SentencePieceModel::kBpe ? "bpe" : "unigram"},
      {"vocab_size", fmt::format("{}", options.vocabulary_size)},
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"byte_fallback", yes_no(options.byte_fallback)},
      {"add_dummy_prefix", yes_no(options.space_before)},
      {"split_digits", yes_no(options.split_digits)},
      {"hard_vocab_limit", "false"},
      {"pad_id", fmt::format("{}", kPad)},
      {"bos_id", fmt::format("{}", kBos)},
      {"eos_id", fmt::format("{}", kEos)},
      {"unk_id", fmt::format("{}", kUnk)},
      {"pad_piece", ReservedToken(kPad)},
      {"bos_piece", ReservedToken(kBos)},
      {"eos_piece", ReservedToken(kEos)},
      {"unk_piece", ReservedToken(kUnk)},
      {"unk_surface", ReservedToken(kUnk)},
      // Text stays as it is, so that decoding gives it back exactly.
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"shuffle_input_sentence", "false"},
      {"max_sentence_length", "1000000000"},
      // The sums of its threads depend on how many there are.
      {"num_threads", "2"},
      {"minloglevel", "3"},
  };
}

}  // namespace

std::unique_ptr<Tokenizer> BuildSentencePiece(const std::vector<std::string>& texts,
                                              const TokenizerOptions& options) {
  std::vector<std::string> prepared;
  for (const std::string& text : texts) {
    if (!IsBlank(text)) prepared.push_back(Prepare(text, options).text);
  }
  Texts iterator(prepared);
  std::string model;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(TrainerArguments(options), &iterator, &model);
  if (!status.ok()) {
    throw Error(fmt::format("SentencePiece cannot be trained with vocabulary_size {} on these {} texts: {}",
                            options.vocabulary_size, prepared.size(), status.ToString()));
  }
  return std::make_unique<SentencePieceTokenizer>(options, std::move(model));
}

std::unique_ptr<Tokenizer> LoadSentencePiece(const std::string& dir, const std::string& name,
                                             const TokenizerOptions& options, const nlohmann::json& json) {
  const std::string path = dir + "/" + name + ".model";
  std::string model = ReadFile(path);
  if (json.at("model_checksum").get<std::string>() != Checksum(model)) {
    throw Error(fmt::format("{} is not the model that was saved with it (cut short or changed)", path));
  }
  return std::make_unique<SentencePieceTokenizer>(options, std::move(model));
}

}  // namespace regard::data
