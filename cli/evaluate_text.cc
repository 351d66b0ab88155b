#include "cli/evaluate_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "cli/text.h"
#include "data/corpus.h"
#include "engine/base/error.h"
#include "train/text_run.h"
#include "train/text_task.h"

namespace regard::cli {

void EvaluateText(const EvaluateTextOptions& options, const Messages& messages) {
  train::TextRun run = train::TextRun::Load(options.run);
  std::int64_t replaced = 0;
  const std::string text = data::ReadText(
      options.file, train::ReadingFor(run.tokenizer().kind(), options.replace_invalid), &replaced);
  if (replaced > 0)
    messages.Warn(fmt::format("{}: not UTF-8 in {}, replaced", options.file, Count(replaced, "line")));
  const data::TextTokens tokens = data::EncodeText(run.tokenizer(), text);
  if (tokens.ids.size() < 2)
    throw Error(fmt::format("{}: one token; expected at least two, to predict one", options.file));
  if (tokens.unknown > 0) {
    messages.Warn(fmt::format("{} of {} not in the vocabulary", Grouped(tokens.unknown),
                              Count(std::ssize(tokens.ids), "token")));
  }
  const train::TextLoss measured = train::MeasureText(run.model(), tokens.ids);
  const double loss = measured.nats / static_cast<double>(measured.tokens);
  // Every token may be of no character (an end mark), or of a part of one.
  const double bits = measured.nats / std::numbers::ln2 / static_cast<double>(tokens.characters);
  Output out("-");
  if (options.json) {
    const nlohmann::ordered_json json{{"tokens", measured.tokens},    {"characters", tokens.characters},
                                      {"unknown", tokens.unknown},    {"loss", loss},
                                      {"perplexity", std::exp(loss)}, {"bits_per_character", bits}};
    out.Print("{}\n", json.dump(2));
  } else {
    out.Print("{:<18}{}, {}\n", "data", Count(measured.tokens, "predicted token"),
              Count(tokens.characters, "character"));
    out.Print("{:<18}{:.4f} nats per token, perplexity {:.2f}\n", "loss", loss, std::exp(loss));
    out.Print("{:<18}{:.4f}\n", "bits per character", bits);
  }
  out.Flush();
}

}  // namespace regard::cli
