#include "cli/training.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "cli/text.h"
#include "cli/training_report.h"
#include "data/dates.h"
#include "engine/base/error.h"
#include "train/evaluation.h"
#include "train/interrupt.h"

namespace regard::cli {
namespace {

struct Split {
  std::vector<data::Pair> training, validation;
};

std::string Fingerprint(const std::vector<data::Pair>& pairs) {
  Hash hash;
  for (const data::Pair& pair : pairs) hash.Add(pair.source).Add(pair.target);
  return hash.Text();
}

std::vector<data::Pair> Dates(std::int64_t count, std::uint64_t seed, data::DateSplit split) {
  std::vector<data::Pair> pairs;
  for (data::DatePair& date : data::GenerateDates(count, seed, split))
    pairs.push_back({std::move(date.source), std::move(date.target)});
  return pairs;
}

data::PairData Read(const PairSource& source, const std::string& name, const std::string& target_file,
                    std::int64_t limit) {
  const data::PairOptions options{
      .limit = limit,
      .utf8 = source.replace_invalid ? data::Utf8Policy::kReplace : data::Utf8Policy::kError,
      .reverse = source.reverse};
  return target_file.empty() ? data::ReadPairs(name, options)
                             : data::ReadParallel(name, target_file, options);
}

void Say(const data::PairReport& report, const Messages& messages) {
  for (const std::string& message : report.Messages()) messages.Warn(message);
}

// A hash of the source decides, so that every translation of a sentence is on the same side.
Split SplitBySource(std::vector<data::Pair> pairs, double fraction) {
  Split split;
  constexpr std::uint64_t kParts = 1000000;
  for (data::Pair& pair : pairs) {
    const std::uint64_t part = Hash().Add(pair.source).value() % kParts;
    const bool held_out = static_cast<double>(part) < fraction * kParts;
    (held_out ? split.validation : split.training).push_back(std::move(pair));
  }
  return split;
}

Split ReadSplit(const PairSource& source, std::uint64_t seed, const Messages& messages) {
  Split split;
  if (source.data == kDates) {
    if (source.limit == 0) throw UsageError("--limit 0: dates are generated without end; say how many");
    split.training = Dates(source.limit, seed, data::DateSplit::kTrain);
    const auto valid =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(source.limit) * source.valid_fraction));
    if (valid > 0) split.validation = Dates(valid, seed, data::DateSplit::kHeldOut);
    return split;
  }
  data::PairData data = Read(source, source.data, source.target_file, source.limit);
  Say(data.report, messages);
  if (source.valid.empty()) return SplitBySource(std::move(data.pairs), source.valid_fraction);
  split.training = std::move(data.pairs);
  data::PairData valid = Read(source, source.valid, "", 0);
  Say(valid.report, messages);
  split.validation = std::move(valid.pairs);
  return split;
}

std::shared_ptr<data::Tokenizer> Build(const std::vector<data::Pair>& pairs,
                                       const std::vector<std::string data::Pair::*>& sides,
                                       const data::TokenizerOptions& options) {
  std::vector<std::string> texts;
  texts.reserve(pairs.size() * sides.size());
  for (const auto side : sides) {
    for (const data::Pair& pair : pairs) texts.push_back(pair.*side);
  }
  return data::BuildTokenizer(texts, options);
}

train::TranslationRun MakeRun(const TrainingSpec& spec, const std::vector<data::Pair>& pairs) {
  train::TranslationSetup setup;
  if (spec.shared_vocabulary) {
    setup.source = Build(pairs, {&data::Pair::source, &data::Pair::target}, spec.source_tokenizer);
    setup.target = setup.source;
  } else {
    setup.source = Build(pairs, {&data::Pair::source}, spec.source_tokenizer);
    setup.target = Build(pairs, {&data::Pair::target}, spec.target_tokenizer);
  }
  setup.model = spec.model;
  setup.model["source_vocab"] = setup.source->size();
  setup.model["target_vocab"] = setup.target->size();
  setup.max_source = spec.max_source;
  setup.max_target = spec.max_target;
  setup.seed = spec.train.seed;
  setup.training = {{"arguments", spec.arguments}, {"pairs", pairs.size()}, {"data", Fingerprint(pairs)}};
  return train::TranslationRun::Create(spec.run, setup, spec.force);
}

train::TranslationRun ResumeRun(const TrainingSpec& spec, const std::vector<data::Pair>& pairs) {
  train::TranslationRun run = train::TranslationRun::Load(spec.run);
  if (run.training().at("data") != Fingerprint(pairs)) {
    throw Error(
        fmt::format("{}: {} pairs are read from {}, and they are not those the run was trained on ({}); "
                    "--resume needs the same",
                    spec.run, pairs.size(), spec.pairs.data, run.training().at("pairs").dump()));
  }
  return run;
}

void SayTruncation(const train::EncodedPairs& pairs, const Messages& messages) {
  for (const std::string& warning : {pairs.truncated_sources.warning, pairs.truncated_targets.warning})
    if (!warning.empty()) messages.Warn(warning);
}

// BLEU and exact match of the validation pairs, where the best weights are kept by one of them.
train::TranslationTask::Metric MetricFor(const TrainingSpec& spec, train::TranslationRun& run,
                                         const std::vector<data::Pair>& validation) {
  if (spec.metric == "loss" || validation.empty()) return {};
  return
      [&run, &validation](models::TranslationModel&, const std::function<bool()>& stop) -> train::Measures {
        if (stop()) return {};
        const train::Evaluation result = train::Evaluate(run, validation, {});
        const double exact = static_cast<double>(result.exact) / static_cast<double>(result.pairs);
        return {{"bleu", result.bleu.score}, {"exact", exact}};
      };
}

}  // namespace

std::vector<data::Pair> HeldOutDates(std::int64_t count, std::uint64_t seed) {
  return Dates(count, seed, data::DateSplit::kHeldOut);
}

train::TrainResult TrainPairs(const TrainingSpec& spec, const Messages& messages) {
  if (!spec.resume) train::RunDirectory::CheckVacant(spec.run, spec.force);
  const Split split = ReadSplit(spec.pairs, spec.train.seed, messages);
  if (split.training.empty())
    throw Error(fmt::format("{}: no pair is left to train on beside {} to validate on", spec.pairs.data,
                            split.validation.size()));
  messages.Fact("read",
                fmt::format("{} to train on, {} to validate on", Count(std::ssize(split.training), "pair"),
                            Grouped(std::ssize(split.validation))));
  if (split.validation.empty() && spec.train.patience > 0)
    throw UsageError("--patience needs pairs to validate on: give --valid or a larger --valid-fraction");

  train::TranslationRun run = spec.resume ? ResumeRun(spec, split.training) : MakeRun(spec, split.training);
  messages.Fact("vocabulary", fmt::format("source {}, target {}", Grouped(run.source().size()),
                                          Grouped(run.target().size())));
  SayModel(run.model().config().at("model"), run.model(), messages);
  train::EncodedPairs training = run.Encode(split.training);
  SayTruncation(training, messages);

  train::TranslationTask task(run.model(), std::move(training), run.Encode(split.validation), spec.task,
                              MetricFor(spec, run, split.validation));
  train::Progress progress(messages.quiet() ? nullptr : stderr);
  const train::InterruptGuard guard;
  train::Trainer trainer(task, spec.train, &run.directory(), &progress);
  if (spec.resume) trainer.Resume();
  const train::TrainResult result = trainer.Run([] { return train::InterruptGuard::Requested(); });
  progress.Finish();
  SayTrained(result, "target tokens", spec.metric, messages);
  return result;
}

nlohmann::json ResumedArguments(const std::string& run) {
  return train::TranslationRun::Load(run).training().at("arguments");
}

}  // namespace regard::cli
