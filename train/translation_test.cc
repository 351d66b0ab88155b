// Training, translating and evaluating with a small real model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/error.h"
#include "train/evaluation.h"
#include "train/scratch_folder.h"
#include "train/trainer.h"
#include "train/translation_run.h"

namespace regard::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Every number below 30 and its French words: "two five" -> "deux cinq".
std::vector<data::Pair> Numbers() {
  const std::vector<std::string> english = {"zero", "one", "two", "three", "four", "five"};
  const std::vector<std::string> french = {"zéro", "un", "deux", "trois", "quatre", "cinq"};
  std::vector<data::Pair> pairs;
  for (std::size_t i = 0; i < 6; ++i) {
    pairs.push_back({english[i] + " .", french[i] + " ."});
    for (std::size_t k = 0; k < 6; ++k) {
      pairs.push_back({english[i] + " " + english[k] + " .", french[i] + " " + french[k] + " ."});
    }
  }
  return pairs;
}

TranslationSetup NumbersSetup(const std::string& model = "bahdanau") {
  std::vector<std::string> sources, targets;
  for (const data::Pair& pair : Numbers()) {
    sources.push_back(pair.source);
    targets.push_back(pair.target);
  }
  TranslationSetup setup;
  setup.source = data::BuildTokenizer(sources, {});
  setup.target = data::BuildTokenizer(targets, {});
  setup.model = {{"model", model},
                 {"source_vocab", setup.source->size()},
                 {"target_vocab", setup.target->size()},
                 {"embed_dim", 16},
                 {"hidden_dim", 24},
                 {"num_layers", 1},
                 {"num_heads", 2},
                 {"dropout", 0.1},
                 {"max_source", 6},
                 {"max_target", 6}};
  setup.max_source = setup.max_target = 6;
  setup.training = nlohmann::json::object();
  return setup;
}

TrainOptions Quick(std::int64_t epochs) {
  TrainOptions options;
  options.epochs = epochs;
  options.schedule.rate = 0.02;
  options.checkpoint_seconds = 1000;
  return options;
}

TrainResult Train(TranslationRun& run, const TrainOptions& options, bool resume = false) {
  TranslationTask task(run.model(), run.Encode(Numbers()), run.Encode(Numbers()), {.batch_size = 7});
  Trainer trainer(task, options, &run.directory());
  if (resume) trainer.Resume();
  return trainer.Run();
}

// Text case 6.
TEST(EncodePairs, MarksEndsAndShortensKeepingTheEnd) {
  const TranslationSetup setup = NumbersSetup();
  const std::vector<data::Pair> pairs = {{"two .", "deux ."}, {"one two three four five .", "un ."}};
  const EncodedPairs encoded = EncodePairs(pairs, *setup.source, *setup.target, 4, 0);
  EXPECT_EQ(encoded.truncated_sources.count, 1);
  EXPECT_EQ(encoded.truncated_targets.count, 0);
  ASSERT_EQ(encoded.sources[1].size(), 4u);
  EXPECT_EQ(encoded.sources[1].back(), models::kEos);
  EXPECT_EQ(encoded.targets[0].front(), models::kBos);
  EXPECT_EQ(encoded.targets[0].back(), models::kEos);

  const models::PairBatch batch = MakePairBatch(encoded, {1, 0});
  EXPECT_THAT(batch.source.sizes().vec(), ElementsAre(2, 4));
  EXPECT_EQ(batch.source[1][3].item<std::int64_t>(), models::kPad);
  EXPECT_THAT(batch.target.sizes().vec(), ElementsAre(2, 4));
  EXPECT_EQ(batch.source_lengths[0].item<std::int64_t>(), 4);
  EXPECT_EQ(batch.source_lengths[1].item<std::int64_t>(), 3);
  EXPECT_EQ(batch.target_lengths[0].item<std::int64_t>(), 3);
}

TEST(SortedBatches, HoldEachIndexOnceShortestFirst) {
  EXPECT_THAT(SortedBatches({5, 1, 3, 1}, 3), ElementsAre(ElementsAre(1, 3, 2), ElementsAre(0)));
  EXPECT_TRUE(SortedBatches({}, 3).empty());
}

class TrainedRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new ScratchFolder;
    TranslationRun run = TranslationRun::Create(Path(), NumbersSetup(), false);
    result_ = Train(run, Quick(40));
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Path() { return *folder_ / "run"; }

  static ScratchFolder* folder_;
  static TrainResult result_;
};
ScratchFolder* TrainedRun::folder_ = nullptr;
TrainResult TrainedRun::result_;

TEST_F(TrainedRun, LoadsAndEvaluatesAsItWasValidated) {
  TranslationRun run = TranslationRun::Load(Path());
  EvaluationOptions options;
  options.bleu.max_order = 2;  // no sentence here has four tokens
  const Evaluation evaluation = Evaluate(run, Numbers(), options);
  EXPECT_EQ(evaluation.pairs, 42);
  EXPECT_EQ(evaluation.tokens, 6 * 3 + 36 * 4);
  EXPECT_NEAR(evaluation.loss, result_.best, 1e-5);
  EXPECT_LT(evaluation.loss, 0.1);
  EXPECT_GE(evaluation.exact, 40);
  EXPECT_GT(evaluation.bleu.score, 95);
  EXPECT_GT(evaluation.sentence_bleu, 0.95);
  EXPECT_EQ(evaluation.sources, 42);
}

TEST_F(TrainedRun, EverySourceIsScoredOnceAgainstAllItsTargets) {
  TranslationRun run = TranslationRun::Load(Path());
  const Evaluation evaluation = Evaluate(
      run,
      {{"two four .", "deux quatre ."}, {"two four .", "autre chose que cela"}, {"five one .", "cinq un ."}},
      {});
  EXPECT_EQ(evaluation.pairs, 3);
  EXPECT_EQ(evaluation.sources, 2);
  EXPECT_EQ(evaluation.exact, 2);
  EXPECT_LT(evaluation.bleu.score, 70);
  EXPECT_EQ(evaluation.bleu_all.correct[0], evaluation.bleu_all.total[0]);
  EXPECT_THAT([&] { Evaluate(run, {}, {}); }, ThrowsMessage<Error>("there is no pair to evaluate on"));
}

// Text cases 6, 7 and 8.
TEST_F(TrainedRun, KeepsLinesInOrderWhateverIsInThem) {
  TranslationRun run = TranslationRun::Load(Path());
  const std::vector<std::string> lines = {"five one .", "",       " \t",         "one two three four five .",
                                          "two .",      "qwerty", "three four ."};
  TranslateOptions options;
  options.batch_size = 2;
  const Translations together = run.Translate(lines, options);
  ASSERT_EQ(together.lines.size(), lines.size());
  EXPECT_EQ(together.lines[1].text, "");
  EXPECT_EQ(together.lines[2].text, "");
  EXPECT_EQ(together.truncated.count, 1);
  EXPECT_THAT(together.truncated.warning, HasSubstr("longer than 6 tokens"));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(run.Translate({lines[i]}, options).lines[0].text, together.lines[i].text) << lines[i];
  }
}

TEST_F(TrainedRun, AttentionFitsThePieces) {
  TranslationRun run = TranslationRun::Load(Path());
  TranslateOptions options;
  options.decode.attention = true;
  const Translations found = run.Translate({"three four .", "two ."}, options);
  const Translation& line = found.lines[0];
  EXPECT_THAT(line.source_pieces, ElementsAre("three", "four", ".", "<eos>"));
  EXPECT_THAT(line.target_pieces, ElementsAre("trois", "quatre", ".", "<eos>"));
  EXPECT_THAT(line.attention.sizes().vec(), ElementsAre(4, 4));
  EXPECT_LT((line.attention.sum(1) - 1).abs().max().item<double>(), 1e-5);
  EXPECT_THAT(found.lines[1].attention.sizes().vec(), ElementsAre(3, 3));
}

TEST_F(TrainedRun, AVocabularyOfAnotherRunIsRefused) {
  const ScratchFolder folder;
  const std::string copy = folder / "copy";
  std::filesystem::copy(Path(), copy, std::filesystem::copy_options::recursive);
  const std::unique_ptr<data::Tokenizer> other = data::BuildTokenizer({"un", "autre", "vocabulaire"}, {});
  other->Save(copy, "target");
  EXPECT_THAT([&] { TranslationRun::Load(copy); },
              ThrowsMessage<Error>(HasSubstr(copy + "/target.json does not belong to this run")));
  // Even where its checksum was brought along.
  nlohmann::json config = nlohmann::json::parse(ReadAll(copy + "/config.json"));
  config["files"].erase("target.json");
  WriteAll(copy + "/config.json", config.dump());
  EXPECT_THAT(
      [&] { TranslationRun::Load(copy); },
      ThrowsMessage<Error>(copy + ": the target vocabulary has 7 entries, the model's weights expect 11"));
}

class TrainingOf : public testing::TestWithParam<const char*> {};

// Text case 18.
TEST_P(TrainingOf, ContinuesBitForBitAfterAnInterruption) {
  const ScratchFolder folder;
  const TranslationSetup setup = NumbersSetup(GetParam());
  TranslationRun straight = TranslationRun::Create(folder / "straight", setup, false);
  Train(straight, Quick(3));
  {
    TranslationRun run = TranslationRun::Create(folder / "pieces", setup, false);
    TranslationTask task(run.model(), run.Encode(Numbers()), run.Encode(Numbers()), {.batch_size = 7});
    std::int64_t polls = 0;
    const TrainResult result = Trainer(task, Quick(3), &run.directory()).Run([&] { return ++polls > 11; });
    ASSERT_EQ(result.reason, StopReason::kInterrupted);
    ASSERT_GT(result.steps, 0);
    ASSERT_LT(result.steps, 18);
  }
  TranslationRun resumed = TranslationRun::Load(folder / "pieces");
  EXPECT_EQ(Train(resumed, Quick(3), /*resume=*/true).steps, 18);
  EXPECT_EQ(ReadAll(folder / "straight/model.safetensors"), ReadAll(folder / "pieces/model.safetensors"));
  const NamedTensors a = straight.directory().LoadCheckpoint().weights,
                     b = resumed.directory().LoadCheckpoint().weights;
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(torch::equal(a[i].second, b[i].second)) << a[i].first;
}

TEST_P(TrainingOf, SharesGiveTheSameBitsOnAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  std::vector<std::string> weights;
  for (const int used : {1, 2, 3}) {
    at::set_num_threads(used);
    const ScratchFolder folder;
    TranslationRun run = TranslationRun::Create(folder / "run", NumbersSetup(GetParam()), false);
    TrainOptions options = Quick(2);
    options.shares = 2;
    Train(run, options);
    weights.push_back(ReadAll(folder / "run/model.safetensors"));
  }
  at::set_num_threads(threads);
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[0], weights[2]);
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingOf, testing::Values("bahdanau", "transformer"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace regard::train
