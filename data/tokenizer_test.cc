#include "data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/pairs.h"
#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Strings = std::vector<std::string>;

Strings Texts(const Tokenizer& tokenizer, std::string_view text) {
  Strings texts;
  for (const Piece& piece : tokenizer.Pieces(text)) texts.push_back(piece.text);
  return texts;
}

// What each piece's bytes are in the text.
Strings Spans(const Tokenizer& tokenizer, std::string_view text) {
  Strings spans;
  for (const Piece& piece : tokenizer.Pieces(text)) {
    EXPECT_LE(piece.begin, piece.end);
    EXPECT_LE(piece.end, text.size());
    spans.emplace_back(text.substr(piece.begin, piece.end - piece.begin));
  }
  return spans;
}

std::unique_ptr<Tokenizer> Build(const Strings& texts, const TokenizerOptions& options) {
  return BuildTokenizer(texts, options);
}

TokenizerOptions Book() {
  TokenizerOptions options;
  options.splitting = WordSplitting::kBook;
  options.lower_case = true;
  return options;
}

TEST(WordTokenizer, BookPreprocessing) {
  const Strings texts = {"Go.",
                         "Il est\xC2\xA0"
                         "calme\xE2\x80\xAF!",
                         "Wow!! Hi,you ."};
  const auto tokenizer = Build(texts, Book());
  EXPECT_THAT(Texts(*tokenizer, texts[0]), ElementsAre("go", "."));
  EXPECT_THAT(Texts(*tokenizer, texts[1]), ElementsAre("il", "est", "calme", "!"));
  EXPECT_THAT(Texts(*tokenizer, texts[2]), ElementsAre("wow", "!", "!", "hi", ",you", "."));
  EXPECT_THAT(Spans(*tokenizer, texts[1]), ElementsAre("Il", "est", "calme", "!"));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("GO.")), "go .");
}

TEST(WordTokenizer, ReservedNumbersThenFrequencyThenBytes) {
  TokenizerOptions options;
  options.splitting = WordSplitting::kSpaces;
  const auto tokenizer = Build({"b b a c c d <pad>"}, options);
  EXPECT_THAT(tokenizer->PieceTexts({0, 1, 2, 3, 4, 5, 6, 7}),
              ElementsAre("<pad>", "<bos>", "<eos>", "<unk>", "b", "c", "a", "d"));
  EXPECT_EQ(tokenizer->size(), 8);
  EXPECT_THAT(tokenizer->Encode("a <pad> e <eos>"), ElementsAre(6, kUnk, kUnk, kUnk));
  EXPECT_EQ(tokenizer->Decode({kBos, 4, kUnk, kEos, kPad}), "b <unk>");
  EXPECT_THROW(tokenizer->Decode({8}), Error);
  EXPECT_THROW(tokenizer->PieceText(-1), Error);
}

TEST(WordTokenizer, RareTokensAreUnknown) {
  TokenizerOptions options;
  options.min_count = 2;
  options.max_size = 5;
  const auto tokenizer = Build({"a a b b b c"}, options);
  EXPECT_EQ(tokenizer->size(), 5);
  EXPECT_THAT(tokenizer->Encode("a b c"), ElementsAre(kUnk, 4, kUnk));
  EXPECT_THAT(Texts(*tokenizer, "c"), ElementsAre("c"));
}

TEST(WordTokenizer, UnicodeWordsAndDigits) {
  TokenizerOptions options;
  options.split_digits = true;
  const std::string text =
      "L'été,\xC2\xA0"
      "le 27/03.";
  const auto tokenizer = Build({text}, options);
  EXPECT_THAT(Texts(*tokenizer, text), ElementsAre("L'été", ",", "le", "2", "7", "/", "0", "3", "."));
  EXPECT_THAT(Texts(*tokenizer, "March 3rd"), ElementsAre("March", "3", "rd"));
}

TEST(WordTokenizer, SpansAreOfTheGivenText) {
  TokenizerOptions options;
  options.lower_case = true;
  // A decomposed é becomes one character, I with a dot two when it is lower-cased: the spans still fit.
  const std::string text = "CAFE\xCC\x81 \xC4\xB0ST \xC3\x89t\xC3\xA9";
  const auto tokenizer = Build({text}, options);
  EXPECT_THAT(Spans(*tokenizer, text), ElementsAre("CAFE\xCC\x81", "\xC4\xB0ST", "\xC3\x89t\xC3\xA9"));
  EXPECT_THAT(Texts(*tokenizer, text), ElementsAre("caf\xC3\xA9", "i\xCC\x87st", "\xC3\xA9t\xC3\xA9"));
  options.locale = "tr";
  EXPECT_THAT(Texts(*Build({text}, options), "\xC4\xB0STI"), ElementsAre("ist\xC4\xB1"));
}

TEST(CharacterTokenizer, GraphemesWithSpaces) {
  TokenizerOptions options;
  options.kind = TokenizerKind::kCharacters;
  const std::string family = "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7";  // woman, joiner, girl
  const std::string text = "a  b" + family + "e\xCC\x81";
  const auto tokenizer = Build({text}, options);
  EXPECT_THAT(Texts(*tokenizer, text), ElementsAre("a", " ", " ", "b", family, "\xC3\xA9"));
  EXPECT_THAT(Spans(*tokenizer, text), ElementsAre("a", " ", " ", "b", family, "e\xCC\x81"));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), "a  b" + family + "\xC3\xA9");
}

Strings Sentences() {
  Strings texts;
  for (int i = 0; i < 400; ++i) {
    texts.push_back("the third of March " + std::to_string(1970 + i % 100));
    texts.push_back("le  " + std::to_string(i) + " f\xC3\xA9vrier d\xC3\xA9j\xC3\xA0 pass\xC3\xA9");
  }
  return texts;
}

TEST(ByteTokenizer, EveryByteIsAToken) {
  TokenizerOptions options;
  options.kind = TokenizerKind::kBytes;
  const auto tokenizer = Build({}, options);
  EXPECT_EQ(tokenizer->size(), kReserved + 256);
  const std::string text = "a\xC3\xA9\n\xFF" + std::string(1, '\0');
  EXPECT_THAT(tokenizer->Encode(text), ElementsAre(4 + 'a', 4 + 0xC3, 4 + 0xA9, 4 + '\n', 4 + 0xFF, 4));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  EXPECT_THAT(Spans(*tokenizer, "\xC3\xA9"), ElementsAre("\xC3", "\xA9"));
  EXPECT_THAT(Texts(*tokenizer, "e\xC3\xA9"), ElementsAre("e", "<0xC3>", "<0xA9>"));
  EXPECT_EQ(tokenizer->Decode({kBos, 4 + 'a', kUnk, kEos, kPad}), "a<unk>");
  EXPECT_THROW(tokenizer->Decode({260}), Error);
  EXPECT_THROW(tokenizer->PieceText(-1), Error);
}

constexpr TokenizerKind kAllKinds[] = {TokenizerKind::kWord, TokenizerKind::kCharacters,
                                       TokenizerKind::kBytes, TokenizerKind::kSentencePiece};

TEST(Tokenizers, BytesOfTheTokensAreTheText) {
  const std::string text = "  the 3rd  of f\xC3\xA9vrier \xE2\x82\xAC\n\nMarch ";
  for (const auto kind : kAllKinds) {
    for (const bool fallback : {false, true}) {
      TokenizerOptions options;
      options.kind = kind;
      options.byte_fallback = fallback;
      options.space_before = !fallback;
      options.vocabulary_size = 340;
      const auto tokenizer = Build(Sentences(), options);
      std::vector<std::int64_t> ids = tokenizer->Encode(text);
      std::string joined = tokenizer->Bytes(kBos, true);
      for (std::size_t i = 0; i < ids.size(); ++i) joined += tokenizer->Bytes(ids[i], i == 0);
      ids.insert(ids.begin(), kBos);
      EXPECT_EQ(joined, tokenizer->Decode(ids));
      EXPECT_NE(joined, "");
      EXPECT_THROW(tokenizer->Bytes(tokenizer->size(), true), Error);
    }
  }
}

TEST(Tokenizers, EmptyTextHasNoPieces) {
  for (const auto kind : kAllKinds) {
    TokenizerOptions options;
    options.kind = kind;
    options.vocabulary_size = 12;
    const auto tokenizer = Build({"a b c", ""}, options);
    EXPECT_THAT(tokenizer->Pieces(""), IsEmpty());
    EXPECT_EQ(tokenizer->Decode({}), "");
    EXPECT_EQ(tokenizer->kind(), kind);
    EXPECT_EQ(TokenizerKindFromName(TokenizerKindName(kind)), kind);
    // Ill-formed text gives unknown pieces that can be shown, not a crash.
    for (const Piece& piece : tokenizer->Pieces("a\xFF\xC3"))
      EXPECT_EQ(piece.text.find('\xFF'), std::string::npos);
  }
}

TEST(Tokenizers, WrongOptionsAreNamed) {
  const auto error = [](const std::function<void(TokenizerOptions&)>& change) {
    TokenizerOptions options;
    change(options);
    return ErrorOf([&] { Build({"a"}, options); });
  };
  EXPECT_THAT(error([](auto& o) { o.min_count = 0; }), HasSubstr("min_count 0; expected 1 or more"));
  EXPECT_THAT(error([](auto& o) { o.max_size = 4; }), HasSubstr("max_size 4; expected"));
  EXPECT_THAT(error([](auto& o) { o.vocabulary_size = 1; }), HasSubstr("vocabulary_size 1; expected"));
  EXPECT_THAT(error([](auto& o) { o.character_coverage = 2; }), HasSubstr("character_coverage 2; expected"));
  EXPECT_THAT(error([](auto& o) { o.locale += '!'; }), HasSubstr("locale \"!\""));
  EXPECT_THAT(ErrorOf([] { Build({"", " "}, {}); }), HasSubstr("no text to build from"));
  EXPECT_THAT(ErrorOf([] { Build({"a", "b\xFF"}, {}); }), HasSubstr("text 2 is not UTF-8 at byte 1"));
  EXPECT_THROW(TokenizerKindFromName("bpe"), UsageError);
}

TEST(SentencePiece, DecodesExactly) {
  const Strings texts = Sentences();
  for (const auto model : {SentencePieceModel::kUnigram, SentencePieceModel::kBpe}) {
    TokenizerOptions options;
    options.kind = TokenizerKind::kSentencePiece;
    options.model = model;
    options.vocabulary_size = 80;
    const auto tokenizer = Build(texts, options);
    EXPECT_LE(tokenizer->size(), 80);
    EXPECT_GT(tokenizer->size(), 40);
    for (const std::string& text : texts) EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("  the  March ")), "  the  March ");
    EXPECT_THAT(tokenizer->PieceTexts({0, 1, 2, 3}), ElementsAre("<pad>", "<bos>", "<eos>", "<unk>"));
    const auto again = Build(texts, options);
    ASSERT_EQ(again->size(), tokenizer->size());
    for (std::int64_t id = 0; id < again->size(); ++id)
      EXPECT_EQ(again->PieceText(id), tokenizer->PieceText(id));
  }
}

TEST(SentencePiece, SpansCoverTheText) {
  TokenizerOptions options;
  options.kind = TokenizerKind::kSentencePiece;
  options.vocabulary_size = 80;
  const auto tokenizer = Build(Sentences(), options);
  const std::string text = "the  fe\xCC\x81vrier x\xE2\x82\xAC";
  std::size_t at = 0;
  for (const Piece& piece : tokenizer->Pieces(text)) {
    EXPECT_EQ(piece.begin, at);
    at = piece.end;
  }
  EXPECT_EQ(at, text.size());
  EXPECT_EQ(tokenizer->Pieces("the")[0].text.substr(0, 3), "\xE2\x96\x81");
  EXPECT_EQ(tokenizer->Encode("\xE2\x82\xAC").back(), kUnk);
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("the \xE2\x82\xAC")), "the <unk>");
}

TEST(SentencePiece, ByteFallbackKnowsEveryCharacter) {
  TokenizerOptions options;
  options.kind = TokenizerKind::kSentencePiece;
  options.vocabulary_size = 340;
  options.byte_fallback = true;
  const auto tokenizer = Build(Sentences(), options);
  const std::string text = "the \xF0\x9F\x98\x80!";
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  EXPECT_THAT(Texts(*tokenizer, text), ::testing::Contains("<0xF0>"));
  std::size_t at = 0;
  for (const Piece& piece : tokenizer->Pieces(text)) {
    EXPECT_LE(piece.begin, piece.end);
    at = std::max(at, piece.end);
  }
  EXPECT_EQ(at, text.size());
}

TEST(SentencePiece, WithoutASpaceBeforeLinesEncodeAlone) {
  TokenizerOptions options;
  options.kind = TokenizerKind::kSentencePiece;
  options.vocabulary_size = 80;
  EXPECT_FALSE(Build(Sentences(), options)->EncodesByLine());
  options.space_before = false;
  for (const auto model : {SentencePieceModel::kUnigram, SentencePieceModel::kBpe}) {
    options.model = model;
    Strings lines = Sentences();
    std::string text;
    for (std::string& line : lines) text += line += '\n';
    const auto tokenizer = Build(lines, options);
    ASSERT_TRUE(tokenizer->EncodesByLine());
    std::vector<std::int64_t> joined;
    for (const std::string& line : lines)
      for (const std::int64_t id : tokenizer->Encode(line)) joined.push_back(id);
    EXPECT_EQ(tokenizer->Encode(text), joined);
    EXPECT_EQ(tokenizer->Decode(joined), text);
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("the March")), "the March");
    EXPECT_NE(tokenizer->PieceText(tokenizer->Encode("the").front()).substr(0, 3), "\xE2\x96\x81");
  }
}

TEST(SentencePiece, TooSmallAVocabularyIsAnError) {
  TokenizerOptions options;
  options.kind = TokenizerKind::kSentencePiece;
  options.vocabulary_size = 6;
  EXPECT_THAT(ErrorOf([&] { Build(Sentences(), options); }), HasSubstr("vocabulary_size 6"));
}

class SavedTokenizer : public TestFolder {};

TEST_F(SavedTokenizer, LoadsAsItWas) {
  for (const auto kind : kAllKinds) {
    TokenizerOptions options;
    options.kind = kind;
    options.lower_case = true;
    options.split_digits = true;
    options.vocabulary_size = 60;
    const auto saved = Build(Sentences(), options);
    saved->Save(folder(), "source");
    const auto loaded = Tokenizer::Load(folder(), "source");
    EXPECT_EQ(loaded->kind(), kind);
    EXPECT_EQ(loaded->size(), saved->size());
    for (const std::string text : {"The 3rd of MARCH 2027", "\xE2\x82\xAC"}) {
      EXPECT_EQ(loaded->Encode(text), saved->Encode(text));
      EXPECT_EQ(Texts(*loaded, text), Texts(*saved, text));
    }
  }
}

TEST_F(SavedTokenizer, BadFilesAreNamed) {
  const auto error = [&](const std::string& json) {
    Write("v.json", json);
    return ErrorOf([&] { Tokenizer::Load(folder(), "v"); });
  };
  EXPECT_THAT(ErrorOf([&] { Tokenizer::Load(folder(), "none"); }), HasSubstr(Path("none.json")));
  Build({"a b"}, {})->Save(folder(), "v");
  const std::string good = Read("v.json");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string json = good;
    const std::size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return error(json.replace(at, from.size(), to));
  };
  EXPECT_EQ(error(good), "no error");
  EXPECT_THAT(error(good.substr(0, good.size() / 2)), HasSubstr("v.json: not a whole tokeniser file"));
  EXPECT_THAT(error("{}"), HasSubstr("v.json: not a tokeniser file"));
  EXPECT_THAT(changed("\"version\": 1", "\"version\": 2"), HasSubstr("v.json: version 2; expected 1"));
  EXPECT_THAT(changed("\"b\"", "\"a\""), HasSubstr("token \"a\" comes twice in the vocabulary, as 4 and 5"));
  EXPECT_THAT(changed("\"<bos>\"", "\"<s>\""), HasSubstr("token 1 of the vocabulary is not <bos>"));
  EXPECT_THAT(changed("\"size\": 6", "\"size\": 7"), HasSubstr("holds 6 tokens; expected the 7"));
  EXPECT_THAT(changed("\"unicode\"", "\"letters\""), HasSubstr("are not this version's"));
  EXPECT_THAT(changed("\"nfc\"", "\"nfd\""), HasSubstr("are not this version's"));
}

TEST_F(SavedTokenizer, BrokenFilesNeverCrash) {
  Build({"a b"}, {})->Save(folder(), "v");
  const auto load = [&](const std::string& name) {
    return [this, name](const std::string& bytes) {
      Write(name, bytes);
      Tokenizer::Load(folder(), "v");
    };
  };
  ReadBroken(Read("v.json"), load("v.json"));
  TokenizerOptions options;
  options.kind = TokenizerKind::kSentencePiece;
  options.vocabulary_size = 60;
  Build(Sentences(), options)->Save(folder(), "v");
  const std::string json = Read("v.json"), model = Read("v.model");
  ReadBroken(model, load("v.model"), 200);
  Write("v.model", model.substr(0, model.size() / 2));
  EXPECT_THAT(ErrorOf([&] { Tokenizer::Load(folder(), "v"); }), HasSubstr("v.model is not the model"));
  Write("v.model", model);
  EXPECT_EQ(ErrorOf([&] { Tokenizer::Load(folder(), "v"); }), "no error");
}

TEST(WordTokenizer, SharedSentencesGiveTheBooksVocabulary) {
  const std::string path = SharedFile("data/fra-eng.tsv");
  if (path.empty()) GTEST_SKIP() << kNoSharedData;
  Strings sources, targets;
  for (const Pair& pair : ReadPairs(path, {.limit = 600}).pairs) {
    sources.push_back(pair.source);
    targets.push_back(pair.target);
  }
  TokenizerOptions options = Book();
  options.min_count = 2;
  // Counted by the published preprocessing on the same lines: words seen twice or more, and the four
  // reserved.
  EXPECT_EQ(Build(sources, options)->size(), 189);
  EXPECT_EQ(Build(targets, options)->size(), 201);
}

}  // namespace
}  // namespace regard::data
