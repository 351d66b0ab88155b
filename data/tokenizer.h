// Tokenisers: text to pieces and numbers, and back. Built from texts, saved to and loaded from a run.
#ifndef REGARD_DATA_TOKENIZER_H_
#define REGARD_DATA_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace regard::data {

// Token numbers every vocabulary shares; the same as in models/translation.h.
inline constexpr std::int64_t kPad = 0, kBos = 1, kEos = 2, kUnk = 3;
inline constexpr std::int64_t kReserved = 4;

// One token of a text. text is what an axis shows: it keeps white space (SentencePiece's "▁the" is "▁the", a
// space of the character tokeniser is " ") and shows an unknown token as it stands in the source.
struct Piece {
  std::string text;
  std::size_t begin = 0, end = 0;  // bytes [begin, end) of the text that was given
  std::int64_t id = kUnk;
};

enum class TokenizerKind { kWord, kCharacters, kBytes, kSentencePiece };

enum class WordSplitting {
  kSpaces,  // at spaces
  kBook,    // d2l.ai's published preprocessing: no-break spaces become spaces, a space goes before each of
            // , . ! ? that has none, then split at spaces. With lower_case it is the book's, token for token.
  kUnicode  // at ICU's word boundaries for the locale; punctuation is tokens of its own, spaces are dropped
};

enum class SentencePieceModel { kUnigram, kBpe };

struct TokenizerOptions {
  TokenizerKind kind = TokenizerKind::kWord;

  // word and characters
  bool lower_case = false;
  bool nfc = true;             // Unicode normalisation form C first
  std::string locale;          // for lower-casing and word boundaries, such as "fr"; empty: the root locale
  std::int64_t min_count = 1;  // rarer tokens are unknown
  std::int64_t max_size = 0;   // tokens at most, the reserved four included; 0: no limit

  // word
  WordSplitting splitting = WordSplitting::kUnicode;
  bool split_digits = false;  // every decimal digit a token of its own

  // sentencepiece (nfc applies too)
  SentencePieceModel model = SentencePieceModel::kUnigram;
  std::int64_t vocabulary_size = 8000;  // upper bound: fewer where the texts do not give so many pieces
  double character_coverage = 1.0;
  bool byte_fallback = false;  // unknown characters become byte tokens, 256 more pieces
  bool space_before = true;  // a text starts with a space that decoding drops: words are the same everywhere
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual TokenizerKind kind() const = 0;
  // Number of ids, the reserved four included.
  virtual std::int64_t size() const = 0;
  // The tokens of a text, in order. Empty text: none.
  virtual std::vector<Piece> Pieces(std::string_view text) const = 0;
  // The ids of Pieces(text): no kBos, no kEos.
  std::vector<std::int64_t> Encode(std::string_view text) const;
  // The text of ids; kPad, kBos and kEos are left out, kUnk reads "<unk>". Words are joined by spaces,
  // characters by nothing, bytes and SentencePiece exactly as they were. Throws regard::Error for an id
  // outside 0..size()-1.
  virtual std::string Decode(const std::vector<std::int64_t>& ids) const = 0;
  // What one token adds to a text, first: when no other than kPad, kBos and kEos went before. Some tokens are
  // not UTF-8 alone (bytes), so that only the bytes of several make a character: data/text_stream.h.
  virtual std::string Bytes(std::int64_t id, bool first) const = 0;
  // Whether the tokens of a text are those of its lines (each with its LF) one after the other.
  virtual bool EncodesByLine() const { return true; }
  // What an axis shows for an id ("<eos>" for kEos). Throws regard::Error for an id outside 0..size()-1.
  virtual std::string PieceText(std::int64_t id) const = 0;
  std::vector<std::string> PieceTexts(const std::vector<std::int64_t>& ids) const;

  // Writes DIR/NAME.json (and DIR/NAME.model for SentencePiece). Throws regard::Error naming the file.
  virtual void Save(const std::string& dir, const std::string& name) const = 0;
  // Reads what Save wrote. Throws regard::Error naming the file when it is missing, cut short, of another
  // version, or holds a token twice.
  static std::unique_ptr<Tokenizer> Load(const std::string& dir, const std::string& name);
};

// Builds a tokeniser from texts: the same texts give the same vocabulary. Ids follow frequency, then byte
// order (SentencePiece: its own order; bytes: kReserved + byte, whatever the texts). Throws
// regard::UsageError for options that do not fit, regard::Error when there is no text to build from.
std::unique_ptr<Tokenizer> BuildTokenizer(const std::vector<std::string>& texts,
                                          const TokenizerOptions& options);

// "word", "characters", "bytes", "sentencepiece". The second throws regard::UsageError naming the known
// kinds.
std::string TokenizerKindName(TokenizerKind kind);
TokenizerKind TokenizerKindFromName(const std::string& name);

}  // namespace regard::data

#endif  // REGARD_DATA_TOKENIZER_H_
