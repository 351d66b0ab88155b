// regard evaluate: how good a trained model is on sentence pairs.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/evaluate_text.h"
#include "cli/image_report.h"
#include "cli/options.h"
#include "cli/text.h"
#include "cli/threads.h"
#include "cli/training.h"
#include "engine/base/error.h"
#include "train/evaluation.h"
#include "train/image_run.h"
#include "train/text_run.h"

namespace regard::cli {
namespace {

struct EvaluateOptions {
  Common common;
  std::string run, data, target_file, output, label;
  bool json = false, confusion = false, reverse = false, lower_case = false, replace_invalid = false,
       stem = false;
  std::int64_t beam = 1, limit = 0, last = 0, order = 2, batch_size = 64;
  double length_penalty = 1;
  std::string tokenize = "13a", smooth = "exp";
};

nlohmann::ordered_json BleuJson(const data::BleuScore& bleu) {
  return {{"score", bleu.score},
          {"precisions", bleu.precisions},
          {"brevity_penalty", bleu.brevity_penalty},
          {"hypothesis_length", bleu.hypothesis_length},
          {"reference_length", bleu.reference_length},
          {"signature", bleu.signature}};
}

nlohmann::ordered_json RougeJson(const data::Rouge& rouge) {
  const auto json = [](const data::RougeScore& score) {
    return nlohmann::ordered_json{{"precision", score.precision}, {"recall", score.recall}, {"f", score.f}};
  };
  return {{"rouge1", json(rouge.rouge1)}, {"rouge2", json(rouge.rouge2)}, {"rougeL", json(rouge.rougel)}};
}

double Share(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

void PrintJson(const train::Evaluation& result, const EvaluateOptions& options, Output& out) {
  const nlohmann::ordered_json json{{"pairs", result.pairs},
                                    {"sources", result.sources},
                                    {"bleu", BleuJson(result.bleu)},
                                    {"bleu_all", BleuJson(result.bleu_all)},
                                    {"rouge", RougeJson(result.rouge)},
                                    {"rouge_all", RougeJson(result.rouge_all)},
                                    {"rouge_stems", options.stem},
                                    {"sentence_bleu", result.sentence_bleu},
                                    {"sentence_bleu_order", options.order},
                                    {"exact", result.exact},
                                    {"exact_match", Share(result.exact, result.pairs)},
                                    {"loss", result.loss},
                                    {"tokens", result.tokens}};
  out.Print("{}\n", json.dump(2));
}

void PrintRouge(const char* name, const data::Rouge& rouge, const char* over, const EvaluateOptions& options,
                Output& out) {
  out.Print("{:<18}{:.3f} / {:.3f} / {:.3f}, F1{}, mean over {}\n", name, rouge.rouge1.f, rouge.rouge2.f,
            rouge.rougel.f, options.stem ? " of stems" : "", over);
}

void PrintTable(const train::Evaluation& result, const EvaluateOptions& options, Output& out) {
  out.Print("{:<18}{}, {}\n", "data", Count(result.pairs, "pair"), Count(result.sources, "distinct source"));
  out.Print("{:<18}{:.2f}   {}\n", "BLEU", result.bleu.score, result.bleu.signature);
  out.Print("{:<18}{:.2f}   {}\n", "BLEU, all refs", result.bleu_all.score, result.bleu_all.signature);
  PrintRouge("ROUGE-1/2/L", result.rouge, "pairs", options, out);
  PrintRouge("ROUGE, all refs", result.rouge_all, "sources", options, out);
  out.Print("{:<18}{:.3f}, mean over pairs\n", fmt::format("sentence BLEU-{}", options.order),
            result.sentence_bleu);
  out.Print("{:<18}{:.1f} %, {} of {}\n", "exact match", 100 * Share(result.exact, result.pairs),
            Grouped(result.exact), Grouped(result.pairs));
  out.Print("{:<18}{:.4f} nats per target token, perplexity {:.2f}\n", "loss", result.loss,
            std::exp(result.loss));
}

void WriteTranslations(const train::Evaluation& result, const std::string& path) {
  Output file(path);
  for (const std::string& line : result.translations) file.Write(line + "\n");
  file.Close();
}

std::vector<data::Pair> ReadTest(const EvaluateOptions& options, const Messages& messages) {
  constexpr std::int64_t kDateCount = 1000;
  if (options.data == kDates) return HeldOutDates(options.limit > 0 ? options.limit : kDateCount, 1);
  const data::PairOptions reading{
      .limit = options.limit,
      .utf8 = options.replace_invalid ? data::Utf8Policy::kReplace : data::Utf8Policy::kError,
      .reverse = options.reverse};
  data::PairData data = options.target_file.empty()
                            ? data::ReadPairs(options.data, reading)
                            : data::ReadParallel(options.data, options.target_file, reading);
  for (const std::string& message : data.report.Messages()) messages.Warn(message);
  return std::move(data.pairs);
}

// What is meant for another kind of model says nothing about this one.
void ExpectOptions(const CLI::App& command, const std::vector<std::string>& fitting, const char* model) {
  static const std::vector<std::string> common{"RUN", "DATA", "--json", "--quiet", "--threads", "--help"};
  const auto is_one_of = [](const CLI::Option& option, const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return option.check_name(name); });
  };
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0 && !is_one_of(*option, common) && !is_one_of(*option, fitting))
      throw UsageError(
          fmt::format("{} does not apply: RUN is {}", option->get_name(option->get_positional()), model));
  }
}

void RunEvaluate(const CLI::App& command, const EvaluateOptions& options) {
  UseThreads(options.common);
  const Messages messages(options.common.quiet);
  const std::string kind = train::RunDirectory::KindOf(options.run);
  if (kind == train::TextRun::kKind) {
    ExpectOptions(command, {"--replace-invalid"}, "a language model");
    return EvaluateText({options.run, options.data, options.json, options.replace_invalid}, messages);
  }
  if (kind == train::ImageRun::kKind) {
    ExpectOptions(command, {"--label", "--limit", "--last", "--confusion"}, "a classifier of images");
    return EvaluateImages({.run = options.run,
                           .data = options.data,
                           .label = options.label,
                           .limit = options.limit,
                           .last = options.last,
                           .json = options.json,
                           .confusion = options.confusion});
  }
  for (const char* name : {"--label", "--last", "--confusion"}) {
    if (command.count(name) > 0)
      throw UsageError(fmt::format("{} does not apply: RUN is a translator", name));
  }
  train::TranslationRun run = train::TranslationRun::Load(options.run);
  const std::vector<data::Pair> pairs = ReadTest(options, messages);

  train::Progress progress(messages.quiet() ? nullptr : stderr);
  train::EvaluationOptions evaluation;
  evaluation.translate.decode = {.beam = options.beam, .length_penalty = options.length_penalty};
  evaluation.translate.batch_size = options.batch_size;
  evaluation.translate.progress = &progress;
  evaluation.bleu.tokenize = options.tokenize;
  evaluation.bleu.lowercase = options.lower_case;
  evaluation.bleu.smooth = options.smooth;
  evaluation.rouge.stem = options.stem;
  evaluation.sentence_order = static_cast<int>(options.order);
  const train::Evaluation result = train::Evaluate(run, pairs, evaluation);
  progress.Finish();
  for (const std::string& warning : {result.truncated_sources.warning, result.truncated_targets.warning})
    if (!warning.empty()) messages.Warn(warning);

  if (!options.output.empty()) WriteTranslations(result, options.output);
  Output out("-");
  options.json ? PrintJson(result, options, out) : PrintTable(result, options, out);
  out.Flush();
}

}  // namespace

void AddEvaluate(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App& command = AddCommand(
      app, "evaluate",
      "Measure a trained model: a translator on pairs, a language model on a text, a classifier on images\n\n"
      "BLEU is that of sacrebleu, with its signature: with the one target of each pair, and with all targets "
      "of a source as its references. ROUGE is that of the rouge-score package, of several references the "
      "best. "
      "Sentence BLEU and exact match compare tokens. Of a language model, the loss of every token of DATA "
      "but "
      "the first, in windows of the context. Of a classifier, the share of images told rightly, and the "
      "loss.",
      "regard evaluate runs/mine test.tsv\n"
      "regard evaluate runs/mine test.tsv --beam 4 --json --output translations.txt\n"
      "regard evaluate runs/bard book.txt\n"
      "regard evaluate runs/digits digits.csv --last 450 --confusion");
  AddText(command, "RUN", "", options->run, "Folder of the trained model")->required();
  AddText(command, "DATA", "", options->data,
          "Pairs, as for regard train pairs (dates: 1,000 that no training has seen), a text, or images")
      ->required();
  AddText(command, "TARGET", "", options->target_file,
          "With it, DATA holds the sources and this file the targets, line by line");
  AddFlag(command, "--json", options->json, "As JSON, with all digits");
  AddText(command, "-o,--output", "FILE", options->output, "Write the translations, one line a pair");
  AddInteger(command, "--limit", "N", options->limit, 0, "Pairs or images to read, the first ones; 0: all");
  AddInteger(command, "--last", "N", options->last, 0, "Images: only the last ones; 0: all");
  AddText(command, "--label", "COLUMN", options->label, "Images: as for regard train images");
  AddFlag(command, "--confusion", options->confusion, "Images: how often each class was told for each");
  AddInteger(command, "-b,--beam", "N", options->beam, 1, "Hypotheses kept in the search; 1: greedy", 1024);
  AddReal(command, "--length-penalty", "X", options->length_penalty, {.min = 0, .max = 10},
          "A hypothesis is ranked by log-probability / length^X");
  AddInteger(command, "--batch-size", "N", options->batch_size, 1, "Lines translated together", 65536);
  AddInteger(command, "--order", "K", options->order, 1, "Longest n-grams of sentence BLEU", 100);
  AddChoice(command, "--tokenize", options->tokenize, {"13a", "intl", "char", "none"}, "BLEU's tokens");
  AddChoice(command, "--smooth", options->smooth, {"exp", "floor", "add-k", "none"}, "BLEU's smoothing");
  AddFlag(command, "--lower-case", options->lower_case, "BLEU ignores case");
  AddFlag(command, "--stem", options->stem, "ROUGE compares stems of English words (Porter's)");
  AddFlag(command, "--reverse", options->reverse, "The model translates from target to source");
  AddFlag(command, "--replace-invalid", options->replace_invalid, "Read what is not UTF-8 as U+FFFD");
  AddCommon(command, options->common);
  command.callback([options, &command] { RunEvaluate(command, *options); });
}

}  // namespace regard::cli
