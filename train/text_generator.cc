#include "train/text_generator.h"

#include <limits>

#include "data/corpus.h"
#include "data/stop_strings.h"
#include "engine/base/error.h"

namespace regard::train {

TextGenerator::TextGenerator(models::LanguageModel& model, const data::Tokenizer& tokenizer,
                             const GeneratorOptions& options)
    : tokenizer_(tokenizer),
      options_(options),
      decoder_(model.Decode()),
      random_(options.seed),
      stream_(tokenizer) {
  data::CheckSampling(options.sampling);
  const data::StopStrings check(options.stops);
}

void TextGenerator::Read(std::string_view text) {
  const std::vector<std::int64_t> ids = data::EncodePrompt(tokenizer_, text);
  if (text_.empty() && ids.empty()) throw Error("the prompt is empty: expected at least one token");
  for (const std::int64_t id : ids) stream_.Push(id);
  text_.insert(text_.end(), ids.begin(), ids.end());
}

std::int64_t TextGenerator::Next() {
  const auto count = static_cast<std::int64_t>(text_.size() - seen_);
  torch::Tensor logits =
      decoder_->Step(torch::from_blob(text_.data() + seen_, {1, count}, torch::kLong)).to(torch::kFloat);
  seen_ = text_.size();
  float* l = logits.data_ptr<float>();
  for (const std::int64_t id : {models::kPad, models::kBos, models::kUnk}) {
    if (id < logits.size(1)) l[id] = -std::numeric_limits<float>::infinity();
  }
  return data::SampleToken({l, static_cast<std::size_t>(logits.size(1))}, options_.sampling, text_, random_);
}

TextEnd TextGenerator::Write(std::int64_t tokens, const std::function<void(const std::string&)>& show,
                             const std::function<bool()>& interrupted) {
  if (text_.empty()) throw Error("there is no text to go on with: expected a prompt");
  data::StopStrings stops(options_.stops);
  const auto finish = [&](TextEnd end) {
    show(stops.Push(stream_.Finish()) + stops.Finish());
    return end;
  };
  for (std::int64_t n = 0; n < tokens; ++n) {
    if (interrupted()) return finish(TextEnd::kInterrupted);
    const std::int64_t id = Next();
    if (id == models::kEos) return finish(TextEnd::kEndMark);
    text_.push_back(id);
    show(stops.Push(stream_.Push(id)));
    if (stops.stopped()) return TextEnd::kStop;
  }
  return finish(TextEnd::kTokens);
}

}  // namespace regard::train
