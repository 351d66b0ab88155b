#include "data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Tokenizer> Build(TokenizerKind kind, const std::vector<std::string>& texts) {
  TokenizerOptions options;
  options.kind = kind;
  options.space_before = false;
  options.vocabulary_size = 60;
  return BuildTokenizer(texts, options);
}

class CorpusFile : public TestFolder {};

// Text case 9.
TEST_F(CorpusFile, OnlyLfAndCrLfEndALine) {
  const std::string kept = "a\u2028b\u0085c\fd";
  EXPECT_EQ(ReadText(Write("t", "\xEF\xBB\xBF" + kept + "\r\nx\ry\n\n")), kept + "\nx y\n\n");
  EXPECT_EQ(ReadText(Write("t", "no end")), "no end");
  EXPECT_EQ(ReadText(Write("t", "a\r\n"), {.raw = true}), "a\r\n");
}

// Text case 11.
TEST_F(CorpusFile, NotUtf8IsAnErrorWithTheByteOffsetOrReplaced) {
  const std::string path = Write("t", "good\nb\xFF\xE9z\n");
  EXPECT_THAT(ErrorOf([&] { ReadText(path); }),
              HasSubstr("t: line 2: not UTF-8 at byte 6 of the file (0xFF)"));
  std::int64_t replaced = 0;
  EXPECT_EQ(ReadText(path, {.utf8 = Utf8Policy::kReplace}, &replaced), "good\nb\uFFFD\uFFFDz\n");
  EXPECT_EQ(replaced, 1);
  EXPECT_EQ(ReadText(path, {.raw = true}, &replaced), "good\nb\xFF\xE9z\n");
  EXPECT_EQ(replaced, 0);
}

TEST_F(CorpusFile, BadFilesAreNamed) {
  EXPECT_THAT(ErrorOf([&] { ReadText(Path("none")); }), HasSubstr("none: cannot be opened"));
  EXPECT_THAT(ErrorOf([&] { ReadText(folder()); }), HasSubstr("a folder; expected a file"));
  EXPECT_THAT(ErrorOf([&] { ReadText(Write("t", "")); }), HasSubstr("t: empty; expected a text"));
  EXPECT_THAT(ErrorOf([&] { ReadText(Write("t", "\xEF\xBB\xBF")); }), HasSubstr("t: empty"));
}

TEST(TextSplit, ByCharacters) {
  const TextParts parts = SplitText("aéïou😀bcde", .25);  // floor(10 * .75) = 7
  EXPECT_EQ(parts.training, "aéïou😀b");
  EXPECT_EQ(parts.validation, "cde");
  EXPECT_EQ(SplitText("abc", 0).validation, "");
  EXPECT_EQ(SplitText("a\xFF\xFFz", .5).validation, "\xFFz");
  EXPECT_THAT(ErrorOf([] { SplitText("a", 1); }),
              HasSubstr("validation share 1; expected 0 or more, below 1"));
  EXPECT_THROW(SplitText("a", -.1), UsageError);
}

TEST(TextSplit, LinesKeepTheirEnd) {
  EXPECT_THAT(LinesOf("a\n\nb"), ElementsAre("a\n", "\n", "b"));
  EXPECT_THAT(LinesOf("a\n"), ElementsAre("a\n"));
  EXPECT_THAT(LinesOf(""), IsEmpty());
}

TEST(TextEncoding, SharedTextAsThePublishedSetting) {
  const std::string path = SharedFile("data/tinyshakespeare.txt");
  if (path.empty()) GTEST_SKIP() << kNoSharedData;
  const std::string text = ReadText(path);
  const TextParts parts = SplitText(text, .1);
  const auto tokenizer = Build(TokenizerKind::kCharacters, {text});
  EXPECT_EQ(tokenizer->size(), 65 + kReserved);
  // The published preparation has these numbers of tokens.
  EXPECT_EQ(EncodeText(*tokenizer, parts.training).ids.size(), 1003854u);
  const TextTokens validation = EncodeText(*tokenizer, parts.validation);
  EXPECT_EQ(validation.ids.size(), 111540u);
  EXPECT_EQ(validation.characters, 111539);
  EXPECT_EQ(validation.unknown, 0);
  EXPECT_EQ(tokenizer->Decode(validation.ids), parts.validation);
}

TEST(TextEncoding, LongTextsInBlocksAreTheSame) {
  std::string text, line;
  for (int i = 0; text.size() < 1500000; ++i) {
    line = "the number " + std::to_string(i % 1000) + " f\xC3\xA9vrier\n";
    text += line;
  }
  for (const auto kind : {TokenizerKind::kCharacters, TokenizerKind::kBytes, TokenizerKind::kSentencePiece}) {
    const auto tokenizer = Build(kind, LinesOf(std::string_view(text).substr(0, 40000)));
    const TextTokens tokens = EncodeText(*tokenizer, text);
    EXPECT_EQ(tokens.ids, tokenizer->Encode(text));
    EXPECT_EQ(tokenizer->Decode(tokens.ids), text);
    EXPECT_EQ(tokens.unknown, 0);
  }
  const std::string one_line(2500000, 'a');
  EXPECT_EQ(EncodeText(*Build(TokenizerKind::kBytes, {}), one_line).ids.size(), one_line.size());
}

TEST(TextEncoding, CharactersThatTheTokensPredict) {
  const auto bytes = Build(TokenizerKind::kBytes, {});
  EXPECT_EQ(EncodeText(*bytes, "aé😀").characters, 2);
  EXPECT_EQ(EncodeText(*bytes, "").characters, 0);
  const auto characters = Build(TokenizerKind::kCharacters, {"ab"});
  const TextTokens tokens = EncodeText(*characters, "e\xCC\x81xab");  // the first token is two code points
  EXPECT_EQ(tokens.ids.size(), 4u);
  EXPECT_EQ(tokens.characters, 3);
  EXPECT_EQ(tokens.unknown, 2);
}

// Text case 17.
TEST(Prompt, AnUnknownCharacterIsNamedWithItsPosition) {
  const auto tokenizer = Build(TokenizerKind::kCharacters, {"abcé"});
  EXPECT_EQ(EncodePrompt(*tokenizer, "cab"), tokenizer->Encode("cab"));
  EXPECT_EQ(ErrorOf([&] { EncodePrompt(*tokenizer, "éab€"); }),
            "character 4 of the prompt, \"€\" (U+20AC), is not in the vocabulary");
  EXPECT_THAT(ErrorOf([&] { EncodePrompt(*tokenizer, "a\u200B"); }),
              HasSubstr("character 2 of the prompt, \"\u200B\" (U+200B)"));
  EXPECT_THAT(ErrorOf([&] { EncodePrompt(*Build(TokenizerKind::kSentencePiece, {"ab ab ba"}), "ab €"); }),
              HasSubstr("character 4 of the prompt, \"€\""));
  EXPECT_EQ(EncodePrompt(*Build(TokenizerKind::kBytes, {}), "€").size(), 3u);
}

TEST(Windows, DrawnByASeedAndWithinTheText) {
  const WindowOptions options{.context = 3, .batch_size = 2000, .seed = 1, .epoch = 2};
  std::vector<int> seen(10);
  for (const Window& window : DrawWindows(10, options, 5)) {
    EXPECT_EQ(window.length, 3);
    ASSERT_GE(window.begin, 0);
    ASSERT_LT(window.begin + window.length, 10);  // the last target is there
    ++seen[static_cast<std::size_t>(window.begin)];
  }
  for (int begin = 0; begin < 7; ++begin) EXPECT_NEAR(seen[static_cast<std::size_t>(begin)], 2000 / 7., 60);
}

// Text case 18.
TEST(Windows, ResumedTrainingSeesTheSameBatches) {
  const WindowOptions options{.context = 8, .batch_size = 4, .seed = 1, .epoch = 0};
  const auto begins = [](const std::vector<Window>& windows) {
    std::vector<std::int64_t> list;
    for (const Window& window : windows) list.push_back(window.begin);
    return list;
  };
  EXPECT_EQ(DrawWindows(1000, options, 7), DrawWindows(1000, options, 7));
  WindowOptions other = options;
  other.epoch = 1;
  EXPECT_NE(begins(DrawWindows(1000, options, 7)), begins(DrawWindows(1000, other, 7)));
  other = options;
  other.seed = 2;
  EXPECT_NE(begins(DrawWindows(1000, options, 7)), begins(DrawWindows(1000, other, 7)));
  EXPECT_NE(begins(DrawWindows(1000, options, 7)), begins(DrawWindows(1000, options, 8)));
  // Pinned: a training that is resumed by another build goes on with the same batches.
  EXPECT_THAT(begins(DrawWindows(1000, options, 7)), ElementsAre(907, 226, 432, 122));
}

TEST(Windows, CoverEveryTargetOnce) {
  for (const std::int64_t count : {0, 1, 2, 64, 65, 66, 129, 1000}) {
    std::vector<int> predicted(static_cast<std::size_t>(count));
    for (const Window& window : CoverWindows(count, 64)) {
      EXPECT_GE(window.length, 1);
      EXPECT_LE(window.length, 64);
      for (std::int64_t i = 0; i < window.length; ++i)
        ++predicted.at(static_cast<std::size_t>(window.begin + i + 1));
    }
    for (std::size_t i = 0; i < predicted.size(); ++i) EXPECT_EQ(predicted[i], i > 0) << count << " " << i;
  }
}

TEST(Windows, WrongSizesAreNamed) {
  EXPECT_THAT(ErrorOf([] { DrawWindows(64, {.context = 64}, 0); }),
              HasSubstr("a text of 64 tokens; expected more than the context of 64"));
  EXPECT_THAT(ErrorOf([] { DrawWindows(9, {.context = 0}, 0); }), HasSubstr("context of 0 tokens"));
  EXPECT_THAT(ErrorOf([] { DrawWindows(99, {.batch_size = 0}, 0); }), HasSubstr("batches of 0 windows"));
  EXPECT_THROW(CoverWindows(9, 0), UsageError);
}

}  // namespace
}  // namespace regard::data
