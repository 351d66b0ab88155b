// Text that comes a token at a time, printed as soon as its characters are whole.
#ifndef REGARD_DATA_TEXT_STREAM_H_
#define REGARD_DATA_TEXT_STREAM_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "data/tokenizer.h"

namespace regard::data {

// Bytes in, UTF-8 out: a character split over calls comes when it is whole. All that is returned together is
// ReplaceInvalidUtf8 of all that was pushed, however it was cut.
class Utf8Stream {
 public:
  // The characters that are whole now.
  std::string Push(std::string_view bytes);
  // What was held back at the end: a character that never became whole, as U+FFFD; empty when there is none.
  std::string Finish();

 private:
  std::string held_;  // at most 3 bytes, the beginning of a character
};

// Tokens in, text out. All that is returned together is the tokeniser's Decode of the tokens, with what is
// not UTF-8 replaced. The tokeniser has to outlive the stream.
class TokenStream {
 public:
  explicit TokenStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  // Throws regard::Error for an id outside 0..size()-1.
  std::string Push(std::int64_t id);
  std::string Finish() { return utf8_.Finish(); }

 private:
  const Tokenizer& tokenizer_;
  Utf8Stream utf8_;
  bool first_ = true;  // no token of text yet
};

}  // namespace regard::data

#endif  // REGARD_DATA_TEXT_STREAM_H_
