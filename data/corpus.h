// One text as a list of tokens: its parts for training and validation, and windows of a context length.
#ifndef REGARD_DATA_CORPUS_H_
#define REGARD_DATA_CORPUS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/pairs.h"
#include "data/tokenizer.h"

namespace regard::data {

struct TextReading {
  Utf8Policy utf8 = Utf8Policy::kError;
  bool raw = false;  // the bytes as they lie, for the tokeniser of bytes: nothing is checked or changed
};

// A whole file. Unless raw: a byte-order mark at the start is dropped, CR LF becomes LF and a lone CR a
// space. Throws regard::Error naming the file when it cannot be read, is empty, or (unless replaced) is not
// UTF-8, with the byte offset. *replaced: lines in which something was replaced.
std::string ReadText(const std::string& path, const TextReading& options = {},
                     std::int64_t* replaced = nullptr);

// The text's first characters and its last ones. Parts of the text that was given.
struct TextParts {
  std::string_view training, validation;
};

// Of n characters (code points) the first floor(n * (1 - validation_share)) are for training. Throws
// regard::UsageError for a share outside of 0..1 (1 excluded).
TextParts SplitText(std::string_view text, double validation_share);

// The lines of a text, each with its LF: what to build a tokeniser from, so that no token goes on past one.
std::vector<std::string> LinesOf(std::string_view text);

struct TextTokens {
  std::vector<std::int64_t> ids;
  std::int64_t characters =
      0;                     // code points after the first token: what ids[1..] predict, for bits a character
  std::int64_t unknown = 0;  // tokens that are kUnk
};

// The tokens of a text of any length: encoded some lines at a time, where the tokeniser allows it.
TextTokens EncodeText(const Tokenizer& tokenizer, std::string_view text);

// The tokens of a prompt. Throws regard::Error naming the first character that the vocabulary does not know
// and its position, counted in code points from 1.
std::vector<std::int64_t> EncodePrompt(const Tokenizer& tokenizer, std::string_view prompt);

// ids[begin .. begin + length - 1] as inputs, the same shifted by one as targets.
struct Window {
  std::int64_t begin = 0, length = 0;
  bool operator==(const Window&) const = default;
};

struct WindowOptions {
  std::int64_t context = 64;     // length of every window
  std::int64_t batch_size = 12;  // windows a batch
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

// Windows of one batch at uniformly random places of `count` tokens: begin in 0 .. count - context - 1. A
// pure function of its arguments, so that a resumed training goes on with the same batches. Throws
// regard::UsageError when context or batch_size is below 1, regard::Error when there are not more tokens
// than context.
std::vector<Window> DrawWindows(std::int64_t count, const WindowOptions& options, std::int64_t batch);

// Windows one after the other that predict each token but the first exactly once; the last may be shorter.
// Fewer than two tokens: none. Throws regard::UsageError when context is below 1.
std::vector<Window> CoverWindows(std::int64_t count, std::int64_t context);

}  // namespace regard::data

#endif  // REGARD_DATA_CORPUS_H_
