// regard train text: from a text to a run directory.
#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/loop_options.h"
#include "cli/options.h"
#include "cli/presets.h"
#include "cli/resume.h"
#include "cli/text.h"
#include "cli/threads.h"
#include "cli/training_report.h"
#include "data/corpus.h"
#include "engine/base/error.h"
#include "train/interrupt.h"
#include "train/text_run.h"
#include "train/text_task.h"

namespace regard::cli {
namespace {

// The options as typed.
struct TextOptions : RunOptions {
  Common common;
  std::string file, valid;
  double valid_fraction = 0.1;
  bool replace_invalid = false;

  std::string tokenizer = "characters";
  std::int64_t vocabulary_size = 0;

  std::string model = "gpt";
  std::int64_t layers = 4, heads = 4, embed_dim = 128, ffn_dim = 0, context = 128;
  double dropout = 0;
  bool no_bias = false, untied = false;
  std::string activation = "gelu";

  std::int64_t batch_size = 12;
  LoopOptions loop{.epochs = 0,
                   .max_steps = 2000,
                   .validate_every = 500,
                   .warmup = 100,
                   .least_rate = 1e-4,
                   .weight_decay = 0.1,
                   .beta2 = 0.99,
                   .schedule = "cosine"};
};

data::TokenizerOptions TokenizerFor(const TextOptions& o) {
  data::TokenizerOptions options;
  options.kind = data::TokenizerKindFromName(o.tokenizer == "bpe" ? "sentencepiece" : o.tokenizer);
  if (o.tokenizer == "bpe") options.model = data::SentencePieceModel::kBpe;
  options.max_size = o.vocabulary_size;
  if (o.vocabulary_size > 0) options.vocabulary_size = o.vocabulary_size;
  options.space_before = false;  // a line's tokens are then the same wherever it stands
  return options;
}

struct Corpus {
  std::string text, valid_text;
  data::TextParts parts;
  std::string fingerprint;
};

std::string Read(const TextOptions& o, const std::string& path, const Messages& messages) {
  std::int64_t replaced = 0;
  const auto kind = TokenizerFor(o).kind;
  std::string text = data::ReadText(path, train::ReadingFor(kind, o.replace_invalid), &replaced);
  if (replaced > 0)
    messages.Warn(fmt::format("{}: not UTF-8 in {}, replaced", path, Count(replaced, "line")));
  return text;
}

void ReadCorpus(const TextOptions& o, const Messages& messages, Corpus* corpus) {
  corpus->text = Read(o, o.file, messages);
  if (o.valid.empty()) {
    corpus->parts = data::SplitText(corpus->text, o.valid_fraction);
  } else {
    corpus->valid_text = Read(o, o.valid, messages);
    corpus->parts = {corpus->text, corpus->valid_text};
  }
  corpus->fingerprint = Hash().Add(corpus->text).Add(corpus->valid_text).Text();
}

train::TextRun MakeRun(const TextOptions& o, const Corpus& corpus, nlohmann::json arguments) {
  train::TextSetup setup;
  setup.tokenizer = data::BuildTokenizer(data::LinesOf(corpus.parts.training), TokenizerFor(o));
  setup.model = {{"model", o.model},
                 {"vocab", setup.tokenizer->size()},
                 {"context", o.context},
                 {"embed_dim", o.embed_dim},
                 {"num_heads", o.heads},
                 {"num_layers", o.layers},
                 {"ffn_dim", o.ffn_dim > 0 ? o.ffn_dim : 4 * o.embed_dim},
                 {"dropout", o.dropout},
                 {"bias", !o.no_bias},
                 {"tied", !o.untied},
                 {"activation", o.activation}};
  setup.training = {{"arguments", std::move(arguments)}, {"data", corpus.fingerprint}};
  setup.seed = static_cast<std::uint64_t>(o.loop.seed);
  return train::TextRun::Create(o.run, setup, o.force);
}

train::TextRun ResumeRun(const TextOptions& o, const Corpus& corpus) {
  train::TextRun run = train::TextRun::Load(o.run);
  if (run.training().at("data") != corpus.fingerprint) {
    throw Error(
        fmt::format("{}: the text read from {} is not the one that the run was trained on; --resume "
                    "needs the same",
                    o.run, o.file));
  }
  return run;
}

data::TextTokens Encode(const train::TextRun& run, std::string_view text, const char* what,
                        const Messages& messages) {
  data::TextTokens tokens = data::EncodeText(run.tokenizer(), text);
  if (tokens.unknown > 0) {
    messages.Warn(fmt::format("{} of the {} tokens to {} on not in the vocabulary", Grouped(tokens.unknown),
                              Grouped(std::ssize(tokens.ids)), what));
  }
  return tokens;
}

train::TrainResult Train(const TextOptions& o, nlohmann::json arguments, const Messages& messages) {
  if (!o.resume) train::RunDirectory::CheckVacant(o.run, o.force);
  Corpus corpus;
  ReadCorpus(o, messages, &corpus);
  train::TextRun run = o.resume ? ResumeRun(o, corpus) : MakeRun(o, corpus, std::move(arguments));
  data::TextTokens training = Encode(run, corpus.parts.training, "train", messages);
  data::TextTokens validation = Encode(run, corpus.parts.validation, "validate", messages);
  messages.Fact("read",
                fmt::format("{} to train on, {} to validate on", Count(std::ssize(training.ids), "token"),
                            Grouped(std::ssize(validation.ids))));
  if (validation.ids.size() < 2 && o.loop.patience > 0)
    throw UsageError("--patience needs text to validate on: give --valid or a larger --valid-fraction");
  messages.Fact("vocabulary", Count(run.tokenizer().size(), "token"));
  SayModel(run.model().config().at("model"), run.model(), messages);

  train::TrainOptions options = MakeTrainOptions(o.loop);
  options.adam.decay_matrices_only = true;
  train::TextTask task(run.model(), std::move(training.ids), std::move(validation.ids),
                       {.batch_size = o.batch_size});
  train::Progress progress(messages.quiet() ? nullptr : stderr);
  const train::InterruptGuard guard;
  train::Trainer trainer(task, options, &run.directory(), &progress);
  if (o.resume) trainer.Resume();
  const train::TrainResult result = trainer.Run([] { return train::InterruptGuard::Requested(); });
  progress.Finish();
  SayTrained(result, "tokens", "loss", messages);
  return result;
}

void Complete(CLI::App& command, TextOptions& o) {
  CheckRunOptions(o);
  if (o.resume)
    return ApplyResumed(command,
                        train::TextRun::Load(o.run).training().value("arguments", nlohmann::json::object()));
  if (o.file.empty()) throw UsageError("DATA is missing: a file of text");
  if (!o.preset.empty()) ApplyPreset(command, FindPreset(o.preset, TextPresets()));
  CheckHeads("--embed-dim", o.embed_dim, o.heads);
}

void RunTrainText(CLI::App& command, TextOptions& o) {
  Complete(command, o);
  const Messages messages(o.common.quiet);
  UseThreads(o.common);
  const train::TrainResult result = Train(o, TrainingArguments(command), messages);
  EndIfInterrupted(result, "train text", o.run, messages);
  messages.Say("\nNow type:  {} generate {}", Program(), o.run);
}

void AddModelOptions(CLI::App& command, TextOptions& o) {
  const std::string group = "Model";
  constexpr std::int64_t kWidest = 65536;
  AddChoice(command, "--model", o.model, {"gpt"}, "The network")->group(group);
  AddInteger(command, "--layers", "N", o.layers, 1, "Transformer layers", 512)->group(group);
  AddInteger(command, "--heads", "N", o.heads, 1, "Attention heads of a layer; a divisor of the width",
             kWidest)
      ->group(group);
  AddInteger(command, "--embed-dim", "N", o.embed_dim, 1, "Width of the embeddings and layers", kWidest)
      ->group(group);
  AddInteger(command, "--ffn-dim", "N", o.ffn_dim, 0, "Inner width of the feed-forward part; 0: four times",
             4 * kWidest)
      ->group(group);
  AddInteger(command, "--context", "N", o.context, 1, "Tokens that a prediction sees at most", 1 << 20)
      ->group(group);
  AddReal(command, "--dropout", "P", o.dropout, {.min = 0, .max = 1, .below = true},
          "Of embeddings, attention weights and layers")
      ->group(group);
  AddChoice(command, "--activation", o.activation, {"gelu", "gelu_tanh", "relu"}, "Of the feed-forward part")
      ->group(group);
  AddFlag(command, "--no-bias", o.no_bias, "Projections and norms without biases")->group(group);
  AddFlag(command, "--untied", o.untied, "Embedding and output have weights of their own")->group(group);
}

void AddOptions(CLI::App& command, TextOptions& o) {
  AddText(command, "DATA", "", o.file, "The text, a file in UTF-8 (any bytes with --tokenizer bytes)");
  AddRunOptions(command, o, TextPresets());
  AddText(command, "--valid", "FILE", o.valid, "Text to validate on");
  AddReal(command, "--valid-fraction", "X", o.valid_fraction, {.min = 0, .max = 1, .below = true},
          "Without --valid: the last part of DATA, to validate on");
  AddFlag(command, "--replace-invalid", o.replace_invalid, "Read what is not UTF-8 as U+FFFD");
  AddChoice(command, "--tokenizer", o.tokenizer, {"characters", "bytes", "sentencepiece", "bpe"},
            "What a token is")
      ->group("Text");
  AddInteger(command, "--vocab-size", "N", o.vocabulary_size, 0,
             "Tokens of the vocabulary at most; 0: no limit, sentencepiece and bpe 8000")
      ->group("Text");
  AddModelOptions(command, o);
  AddInteger(command, "--batch-size", "N", o.batch_size, 1, "Windows of a batch", 65536)->group("Training");
  AddLoopOptions(command, o.loop);
  AddCommon(command, o.common);
}

}  // namespace

void AddTrainText(CLI::App& train) {
  auto options = std::make_shared<TextOptions>();
  CLI::App& command = AddCommand(
      train, "text",
      "Train a language model on a text\n\n"
      "A batch is windows of the text at random places. The best weights by validation, over all of "
      "the validation text, are kept in RUN. Ctrl-C saves; --resume goes on.",
      "regard train text shakespeare.txt -o runs/bard --preset shakespeare\n"
      "regard train text book.txt -o runs/book --tokenizer bpe --vocab-size 2000 --context 256\n"
      "regard train text -o runs/book --resume --max-steps 5000");
  AddOptions(command, *options);
  command.callback([options, &command] { RunTrainText(command, *options); });
}

}  // namespace regard::cli
