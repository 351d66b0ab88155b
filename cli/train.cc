// regard train pairs: from a file of sentence pairs to a run directory.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
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
#include "cli/training.h"
#include "engine/base/error.h"

namespace regard::cli {
namespace {

// The options as typed; TrainingSpec is what they mean.
struct PairsOptions : RunOptions {
  Common common;
  PairSource pairs;

  std::string tokenizer = "word", target_tokenizer, splitting = "unicode";
  std::string source_language, target_language;
  bool lower_case = false, split_digits = false;
  std::int64_t min_count = 1, vocabulary_size = 0;
  std::int64_t max_source = 100, max_target = 100;

  std::string model = "bahdanau";
  std::int64_t embed_dim = 128, hidden_dim = 256, layers = 1, heads = 4, ffn_dim = 0;
  double dropout = 0.1, embedding_dropout = 0, readout_dropout = 0;
  bool bidirectional = false, tied = false, shared = false;
  std::string readout = "state", norm = "pre", activation = "relu", embedding_init = "scaled";

  std::int64_t batch_size = 64, batch_tokens = 0;
  double label_smoothing = 0;
  std::string metric = "loss";
  LoopOptions loop;
};

const std::vector<std::string> kTokenizers{"word", "characters", "bytes", "sentencepiece", "bpe"};

data::TokenizerOptions MakeTokenizer(const PairsOptions& o, const std::string& name,
                                     const std::string& language) {
  data::TokenizerOptions options;
  options.kind = data::TokenizerKindFromName(name == "bpe" ? "sentencepiece" : name);
  if (name == "bpe") options.model = data::SentencePieceModel::kBpe;
  options.lower_case = o.lower_case;
  options.locale = language;
  options.min_count = o.min_count;
  options.max_size = o.vocabulary_size;
  if (o.vocabulary_size > 0) options.vocabulary_size = o.vocabulary_size;
  options.splitting = o.splitting == "book"     ? data::WordSplitting::kBook
                      : o.splitting == "spaces" ? data::WordSplitting::kSpaces
                                                : data::WordSplitting::kUnicode;
  options.split_digits = o.split_digits;
  return options;
}

constexpr char kBahdanau[] = "bahdanau", kTransformer[] = "transformer";

nlohmann::json MakeModel(const PairsOptions& o) {
  nlohmann::json model = {{"model", o.model},
                          {"hidden_dim", o.hidden_dim},
                          {"num_layers", o.layers},
                          {"dropout", o.dropout},
                          {"embedding_dropout", o.embedding_dropout},
                          {"tied", o.tied},
                          {"max_source", o.max_source},
                          {"max_target", o.max_target}};
  if (o.model == kBahdanau) {
    model.update({{"embed_dim", o.embed_dim},
                  {"readout_dropout", o.readout_dropout},
                  {"bidirectional", o.bidirectional},
                  {"readout", o.readout}});
  } else {
    model.update({{"num_heads", o.heads},
                  {"ffn_dim", o.ffn_dim > 0 ? o.ffn_dim : 4 * o.hidden_dim},
                  {"norm", o.norm},
                  {"activation", o.activation},
                  {"embedding_init", o.embedding_init},
                  {"shared", o.shared}});
  }
  return model;
}

TrainingSpec MakeSpec(const PairsOptions& o) {
  TrainingSpec spec;
  spec.pairs = o.pairs;
  spec.source_tokenizer = MakeTokenizer(o, o.tokenizer, o.source_language);
  spec.target_tokenizer =
      MakeTokenizer(o, o.target_tokenizer.empty() ? o.tokenizer : o.target_tokenizer, o.target_language);
  spec.model = MakeModel(o);
  spec.shared_vocabulary = o.shared;
  spec.max_source = o.max_source;
  spec.max_target = o.max_target;
  // Tokens limit a batch instead of sentences, unless both are asked for.
  spec.task.batch_size = o.batch_size;
  spec.task.max_tokens = o.batch_tokens;
  spec.task.label_smoothing = o.label_smoothing;
  spec.train = MakeTrainOptions(o.loop);
  spec.train.best = o.metric;
  spec.train.maximize = o.metric != "loss";
  spec.metric = o.metric;
  spec.run = o.run;
  spec.force = o.force;
  spec.resume = o.resume;
  return spec;
}

// Options of one model only.
const std::vector<std::pair<std::string, std::string>> kOfOneModel{
    {"--embed-dim", kBahdanau},       {"--bidirectional", kBahdanau}, {"--readout", kBahdanau},
    {"--readout-dropout", kBahdanau}, {"--heads", kTransformer},      {"--ffn-dim", kTransformer},
    {"--norm", kTransformer},         {"--activation", kTransformer}, {"--embedding-init", kTransformer}};

void CheckModel(const PairsOptions& o, const std::vector<std::string>& given) {
  for (const auto& [option, model] : kOfOneModel) {
    if (model != o.model && std::find(given.begin(), given.end(), option) != given.end())
      throw UsageError(fmt::format("{} is an option of --model {}, not of {}", option, model, o.model));
  }
  if (o.model == kBahdanau && o.tied && o.readout != "deep") throw UsageError("--tied needs --readout deep");
  if (o.model == kTransformer) CheckHeads("--hidden-dim", o.hidden_dim, o.heads);
  const auto changes_case = [](const std::string& name) { return name == "word" || name == "characters"; };
  if (o.lower_case && !changes_case(o.tokenizer) && !changes_case(o.target_tokenizer))
    throw UsageError(fmt::format("--lower-case: the tokenizer {} takes text as it is", o.tokenizer));
  if (o.shared && !o.target_tokenizer.empty() && o.target_tokenizer != o.tokenizer)
    throw UsageError("--shared-vocab and --target-tokenizer exclude each other");
}

void Complete(CLI::App& command, PairsOptions& o) {
  CheckRunOptions(o);
  if (o.resume) return ApplyResumed(command, ResumedArguments(o.run));
  if (o.pairs.data.empty()) throw UsageError("DATA is missing: a file of sentence pairs, or the word dates");
  if (o.preset.empty() && o.pairs.data == kDates) o.preset = kDates;
  std::vector<std::string> given;
  for (const auto& [option, model] : kOfOneModel) {
    if (command.get_option(option)->count() > 0) given.push_back(option);
  }
  if (!o.preset.empty()) ApplyPreset(command, FindPreset(o.preset));
  CheckModel(o, given);
}

void RunTrainPairs(CLI::App& command, PairsOptions& o) {
  Complete(command, o);
  const Messages messages(o.common.quiet);
  UseThreads(o.common);
  TrainingSpec spec = MakeSpec(o);
  spec.arguments = TrainingArguments(command);
  const train::TrainResult result = TrainPairs(spec, messages);
  EndIfInterrupted(result, "train pairs", o.run, messages);
  messages.Say("\nNow type:  echo TEXT | {} translate {}", Program(), o.run);
}

void AddDataOptions(CLI::App& command, PairsOptions& o) {
  AddText(
      command, "DATA", "", o.pairs.data,
      "Pairs: a file with two columns separated by a tab (-: standard input), a .mo or .po file, a folder of "
      "them, a language such as fr (the catalogues installed for it), or dates (generated)");
  AddText(command, "TARGET", "", o.pairs.target_file,
          "With it, DATA holds the sources and this file the targets, line by line");
  AddRunOptions(command, o, Presets());
  AddInteger(command, "--limit", "N", o.pairs.limit, 0, "Pairs to read, the first ones; 0: all");
  AddFlag(command, "--reverse", o.pairs.reverse, "Learn from target to source");
  AddFlag(command, "--replace-invalid", o.pairs.replace_invalid, "Read what is not UTF-8 as U+FFFD");
  AddText(command, "--valid", "FILE", o.pairs.valid, "Pairs to validate on");
  AddReal(command, "--valid-fraction", "X", o.pairs.valid_fraction, {.min = 0, .max = 1, .below = true},
          "Without --valid: the part of DATA to validate on, chosen by source");
}

void AddTextOptions(CLI::App& command, PairsOptions& o) {
  const std::string group = "Text";
  AddChoice(command, "--tokenizer", o.tokenizer, kTokenizers, "What a token is")->group(group);
  AddChoice(command, "--target-tokenizer", o.target_tokenizer, kTokenizers, "The same, of the target alone")
      ->group(group);
  AddChoice(command, "--splitting", o.splitting, {"unicode", "spaces", "book"},
            "Where words end: at Unicode's word boundaries, at spaces, or at spaces and before , . ! ?")
      ->group(group);
  AddFlag(command, "--split-digits", o.split_digits, "Words: each digit is one")->group(group);
  AddFlag(command, "--lower-case", o.lower_case, "Lower-case everything")->group(group);
  AddText(command, "--source-language", "CODE", o.source_language, "For its rules of case and words")
      ->group(group);
  AddText(command, "--target-language", "CODE", o.target_language, "The same, of the target")->group(group);
  AddInteger(command, "--min-count", "N", o.min_count, 1, "Rarer tokens are unknown")->group(group);
  AddInteger(command, "--vocab-size", "N", o.vocabulary_size, 0,
             "Tokens of a vocabulary at most; 0: no limit, sentencepiece and bpe 8000")
      ->group(group);
  AddFlag(command, "--shared-vocab", o.shared,
          "One vocabulary for both sides; transformer: one embedding, too")
      ->group(group);
  AddInteger(command, "--max-source", "N", o.max_source, 2,
             "Tokens of a source, its end mark counted; longer "
             "ones are shortened")
      ->group(group);
  AddInteger(command, "--max-target", "N", o.max_target, 2, "The same of a target")->group(group);
}

void AddModelOptions(CLI::App& command, PairsOptions& o) {
  const std::string group = "Model";
  constexpr std::int64_t kWidest = 65536;
  AddChoice(command, "--model", o.model, {kBahdanau, kTransformer}, "The network")->group(group);
  AddInteger(command, "--hidden-dim", "N", o.hidden_dim, 1,
             "Width: of the GRU states and their attention; of all of a transformer", kWidest)
      ->group(group);
  AddInteger(command, "--layers", "N", o.layers, 1, "Layers of the encoder, and of the decoder", 64)
      ->group(group);
  const Range probability{.min = 0, .max = 1, .below = true};
  AddReal(command, "--dropout", "P", o.dropout, probability,
          "Of attention weights, and of GRU layers or what a transformer's layer adds")
      ->group(group);
  AddReal(command, "--embedding-dropout", "P", o.embedding_dropout, probability, "Of the embeddings")
      ->group(group);
  AddFlag(command, "--tied", o.tied,
          "Target embedding and output share weights; bahdanau: needs --readout deep")
      ->group(group);

  const std::string recurrent = "Model bahdanau", transformer = "Model transformer";
  AddInteger(command, "--embed-dim", "N", o.embed_dim, 1, "Width of the embeddings", kWidest)
      ->group(recurrent);
  AddReal(command, "--readout-dropout", "P", o.readout_dropout, probability, "Before the vocabulary")
      ->group(recurrent);
  AddChoice(
      command, "--readout", o.readout, {"state", "deep"},
      "What the next token is told from: the decoder's state, or a layer over state, context and last token")
      ->group(recurrent);
  AddFlag(command, "--bidirectional", o.bidirectional, "The encoder reads both ways")->group(recurrent);

  AddInteger(command, "--heads", "N", o.heads, 1, "Attention heads of a layer; divides --hidden-dim", 1024)
      ->group(transformer);
  AddInteger(command, "--ffn-dim", "N", o.ffn_dim, 0,
             "Inner width of the feed-forward networks; 0: 4 x --hidden-dim", 4 * kWidest)
      ->group(transformer);
  AddChoice(command, "--norm", o.norm, {"post", "pre"},
            "Normalise what each part of a layer gives, as first published, or what it takes")
      ->group(transformer);
  AddChoice(command, "--activation", o.activation, {"relu", "gelu"}, "Of the feed-forward networks")
      ->group(transformer);
  AddChoice(
      command, "--embedding-init", o.embedding_init, {"scaled", "unit"},
      "Fresh embeddings, before they are multiplied by the root of the width: with variance 1 / width, or 1")
      ->group(transformer);
}

void AddTrainingOptions(CLI::App& command, PairsOptions& o) {
  const std::string group = "Training";
  AddInteger(command, "--batch-size", "N", o.batch_size, 0, "Pairs of a batch at most; 0: no limit")
      ->group(group);
  AddInteger(command, "--batch-tokens", "N", o.batch_tokens, 0,
             "Pairs times longest length of a batch at most; 0: no limit")
      ->group(group);
  AddReal(command, "--label-smoothing", "X", o.label_smoothing, {.min = 0, .max = 1, .below = true},
          "Probability taken from the right token")
      ->group(group);
  AddChoice(command, "--metric", o.metric, {"loss", "bleu", "exact"},
            "What is validated after each epoch, and decides which weights are kept")
      ->group(group);
  AddLoopOptions(command, o.loop);
}

void AddPairsOptions(CLI::App& command, PairsOptions& options) {
  AddDataOptions(command, options);
  AddTextOptions(command, options);
  AddModelOptions(command, options);
  AddTrainingOptions(command, options);
  AddCommon(command, options.common);
}

}  // namespace

TrainingSpec SpecOf(const std::string& data, const std::string& run, const PresetValues& values) {
  PairsOptions options;
  CLI::App command("", "pairs");
  AddPairsOptions(command, options);
  ApplyPreset(command, {{"DATA", data}, {"--output", run}});
  ApplyPreset(command, values);
  TrainingSpec spec = MakeSpec(options);
  spec.arguments = TrainingArguments(command);
  return spec;
}

void AddTrain(CLI::App& app) {
  CLI::App& train =
      AddCommand(app, "train", "Train a model on your data",
                 "regard train pairs sentences.tsv -o runs/mine\nregard train text book.txt -o runs/book\n"
                 "regard train images digits.csv -o runs/digits\n"
                 "regard train text --help");
  train.require_subcommand(1);
  auto options = std::make_shared<PairsOptions>();
  CLI::App& command =
      AddCommand(train, "pairs",
                 "Train a translator on sentence pairs\n\n"
                 "The best weights by validation are kept in RUN. Ctrl-C saves; --resume goes on.",
                 "regard train pairs sentences.tsv -o runs/mine\n"
                 "regard train pairs english.txt french.txt -o runs/fr --tokenizer bpe --vocab-size 4000\n"
                 "regard train pairs fra-eng.tsv -o runs/book --preset book --limit 600\n"
                 "regard train pairs descriptions.tsv -o runs/summary --preset summary\n"
                 "regard train pairs -o runs/mine --resume --epochs 20");
  AddPairsOptions(command, *options);
  command.callback([options, &command] { RunTrainPairs(command, *options); });
  AddTrainText(train);
  AddTrainImages(train);
}

}  // namespace regard::cli
