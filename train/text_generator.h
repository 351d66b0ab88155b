// Writing text with a language model, a token at a time.
#ifndef REGARD_TRAIN_TEXT_GENERATOR_H_
#define REGARD_TRAIN_TEXT_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/random.h"
#include "data/sampling.h"
#include "data/text_stream.h"
#include "data/tokenizer.h"
#include "models/language.h"

namespace regard::train {

struct GeneratorOptions {
  data::SamplingOptions sampling{};
  std::vector<std::string> stops{};  // the text ends before the first of these
  std::uint64_t seed = 0;
};

enum class TextEnd { kTokens, kStop, kEndMark, kInterrupted };

// A text that the caller and the model write in turn. kPad, kBos and kUnk are never written.
class TextGenerator {
 public:
  // model and tokenizer have to outlive it. Throws regard::UsageError for options out of their range.
  TextGenerator(models::LanguageModel& model, const data::Tokenizer& tokenizer,
                const GeneratorOptions& options);

  // Adds a text. Throws regard::Error as data::EncodePrompt, and when it is empty at the start; nothing is
  // added then.
  void Read(std::string_view text);

  // Writes at most this many tokens. show() gets the text as it comes, whole characters, nothing of a stop
  // string.
  TextEnd Write(
      std::int64_t tokens, const std::function<void(const std::string& text)>& show,
      const std::function<bool()>& interrupted = [] { return false; });

 private:
  std::int64_t Next();

  const data::Tokenizer& tokenizer_;
  GeneratorOptions options_;
  std::unique_ptr<models::LanguageDecoder> decoder_;
  data::Random random_;
  std::vector<std::int64_t> text_;  // all tokens
  std::size_t seen_ = 0;            // those that the decoder has read
  data::TokenStream stream_;
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_TEXT_GENERATOR_H_
