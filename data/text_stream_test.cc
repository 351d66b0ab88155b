#include "data/text_stream.h"

#include <gtest/gtest.h>

#include "data/random.h"
#include "data/unicode.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

// Text case 16.
TEST(Utf8Stream, ASymbolSplitOverTwoTokensIsPrintedWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("caf\xC3"), "caf");
  EXPECT_EQ(stream.Push("\xA9 \xF0\x9F"), "é ");
  EXPECT_EQ(stream.Push("\x98"), "");
  EXPECT_EQ(stream.Push("\x80!"), "😀!");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(Utf8Stream, WhatNeverBecomesWholeIsReplaced) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("a\xE2\x82"), "a");
  EXPECT_EQ(stream.Push("b"),
            "\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(stream.Push("\xF0\x9F"), "");
  EXPECT_EQ(stream.Finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(Utf8Stream, TheSameTextHoweverItIsCut) {
  Random random(3);
  // Lead bytes, continuation bytes and letters in any order.
  const std::string some = "a\x80\x8F\x9F\xA0\xBF\xC0\xC3\xE0\xE2\xED\xEF\xF0\xF4\xF8\xFF";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes, text;
    Utf8Stream stream;
    const std::uint64_t length = random.Below(12);
    for (std::uint64_t i = 0; i < length; ++i) bytes += some[random.Below(some.size())];
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::size_t part = 1 + random.Below(rest.size());
      const std::string whole = stream.Push(rest.substr(0, part));
      ASSERT_EQ(FindInvalidUtf8(whole), std::string::npos);
      text += whole;
      rest.remove_prefix(part);
    }
    text += stream.Finish();
    ASSERT_EQ(text, ReplaceInvalidUtf8(bytes));
  }
}

TEST(TokenStream, AllOfItIsTheDecodedText) {
  const std::string text = " the thé 😀\n the  end";
  for (const auto kind : {TokenizerKind::kWord, TokenizerKind::kCharacters, TokenizerKind::kBytes,
                          TokenizerKind::kSentencePiece}) {
    TokenizerOptions options;
    options.kind = kind;
    options.vocabulary_size = 290;
    options.byte_fallback = true;
    const auto tokenizer = BuildTokenizer({"the end of the theme then"}, options);
    const std::vector<std::int64_t> ids = tokenizer->Encode(text);
    TokenStream stream(*tokenizer);
    std::string joined = stream.Push(kBos);
    for (const std::int64_t id : ids) {
      const std::string part = stream.Push(id);
      EXPECT_EQ(FindInvalidUtf8(part), std::string::npos);
      joined += part;
    }
    joined += stream.Finish();
    EXPECT_EQ(joined, tokenizer->Decode(ids));
    EXPECT_THROW(stream.Push(tokenizer->size()), Error);
  }
}

}  // namespace
}  // namespace regard::data
