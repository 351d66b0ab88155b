// Language models: training, run directories, GPT-2's files and generation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/error.h"
#include "train/scratch_folder.h"
#include "train/text_generator.h"
#include "train/text_run.h"
#include "train/text_task.h"
#include "train/trainer.h"

namespace regard::train {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr char kText[] = "the cat sat on the mat; ";

std::string Repeated(int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += kText;
  return text;
}

TextSetup SmallModel(data::TokenizerKind kind = data::TokenizerKind::kCharacters) {
  data::TokenizerOptions options;
  options.kind = kind;
  TextSetup setup;
  setup.tokenizer = data::BuildTokenizer({kText}, options);
  setup.model = {{"model", "gpt"}, {"vocab", setup.tokenizer->size()},
                 {"context", 16},  {"embed_dim", 24},
                 {"num_heads", 2}, {"num_layers", 1},
                 {"dropout", 0.1}};
  setup.seed = 3;
  return setup;
}

TrainOptions Options(std::int64_t steps) {
  TrainOptions options;
  options.epochs = 0;
  options.max_steps = steps;
  options.schedule = {.kind = Schedule::Kind::kCosine, .rate = 0.01, .warmup_steps = 5, .floor = 0.1};
  options.adam = {.beta2 = 0.99, .weight_decay = 0.1, .decay_matrices_only = true};
  options.validate_every = 20;
  options.accumulation = 2;
  return options;
}

// Trains to `steps` in parts that end at these steps. The cosine ends where the options of all parts say.
NamedTensors Train(const std::string& path, const std::vector<std::int64_t>& ends, std::int64_t steps) {
  TextRun::Create(path, SmallModel(), false);
  NamedTensors weights;
  for (std::size_t part = 0; part < ends.size(); ++part) {
    TextRun run = TextRun::Load(path);
    const auto text = data::EncodeText(run.tokenizer(), Repeated(20)).ids;
    TextTask task(run.model(), text, {text.begin(), text.begin() + 100}, {.batch_size = 4});
    Trainer trainer(task, Options(steps), &run.directory());
    if (part > 0) trainer.Resume();
    std::int64_t calls = 0, begin = part > 0 ? ends[part - 1] : 0;
    trainer.Run([&] { return begin + calls++ >= ends[part]; });
    weights.clear();
    for (const auto& [name, tensor] : WeightsOf(run.model())) weights.emplace_back(name, tensor.clone());
  }
  return weights;
}

// Text case 18.
TEST(TextTask, InterruptedAndResumedGivesTheSameBits) {
  const ScratchFolder folder;
  const NamedTensors whole = Train(folder / "whole", {1000}, 60),
                     parts = Train(folder / "parts", {13, 40, 1000}, 60);
  ASSERT_EQ(whole.size(), parts.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(whole[i].second.equal(parts[i].second));
}

TEST(TextTask, SharesGiveTheSameBitsOnAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  std::vector<std::string> weights;
  for (const int used : {1, 2, 3}) {
    at::set_num_threads(used);
    const ScratchFolder folder;
    TextRun run = TextRun::Create(folder / "run", SmallModel(), false);
    const auto text = data::EncodeText(run.tokenizer(), Repeated(20)).ids;
    TextTask task(run.model(), text, {text.begin(), text.begin() + 100}, {.batch_size = 5});
    TrainOptions options = Options(30);
    options.shares = 2;
    Trainer(task, options, &run.directory()).Run();
    weights.push_back(ReadAll(folder / "run/model.safetensors"));
  }
  at::set_num_threads(threads);
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[0], weights[2]);
}

TEST(TextTask, LearnsATextThatRepeatsAndWritesIt) {
  const ScratchFolder folder;
  Train(folder / "run", {1000}, 150);
  TextRun run = TextRun::Load(folder / "run");
  const auto ids = data::EncodeText(run.tokenizer(), Repeated(4)).ids;
  const TextLoss loss = MeasureText(run.model(), ids);
  EXPECT_EQ(loss.tokens, static_cast<std::int64_t>(ids.size()) - 1);
  EXPECT_LT(loss.nats / static_cast<double>(loss.tokens), 0.3);

  TextGenerator generator(run.model(), run.tokenizer(), {.sampling = {.temperature = 0}});
  generator.Read("the cat s");
  std::string text;
  EXPECT_EQ(generator.Write(30, [&](const std::string& piece) { text += piece; }), TextEnd::kTokens);
  EXPECT_EQ(text, "at on the mat; the cat sat on ");  // past the context of 16 too
}

TEST(MeasureText, IsTheMeanOverWindowsOfTheContext) {
  const TextSetup setup = SmallModel();
  torch::manual_seed(1);
  const auto model = models::MakeLanguageModel(setup.model);
  model->eval();
  const auto ids = data::EncodeText(*setup.tokenizer, Repeated(5)).ids;  // 120: windows of 16, the last of 7
  double nats = 0;
  for (std::size_t begin = 0; begin + 1 < ids.size(); begin += 16) {
    const auto length = std::min<std::int64_t>(16, std::ssize(ids) - 1 - static_cast<std::int64_t>(begin));
    nats +=
        model->Loss(MakeTokenBatch(ids, {{static_cast<std::int64_t>(begin), length}}), 0).nats.item<double>();
  }
  const TextLoss loss = MeasureText(*model, ids);
  EXPECT_EQ(loss.tokens, 119);
  EXPECT_NEAR(loss.nats, nats, 1e-3);
}

TEST(TextRun, KeepsItsKindAndRefusesAnothersVocabulary) {
  const ScratchFolder folder;
  TextRun::Create(folder / "run", SmallModel(), false);
  EXPECT_EQ(RunDirectory::KindOf(folder / "run"), TextRun::kKind);
  EXPECT_THAT([&] { RunDirectory::KindOf(folder / "none"); }, ThrowsMessage<Error>(HasSubstr("no such run")));
  TextSetup setup = SmallModel();
  setup.model["vocab"] = 5;
  TextRun::Create(folder / "other", setup, false);
  EXPECT_THAT([&] { TextRun::Load(folder / "other"); }, ThrowsMessage<Error>(HasSubstr("weights expect 5")));
}

TEST(TextRun, ExportedAsGpt2AndImportedSaysTheSame) {
  const ScratchFolder folder;
  TextRun run = TextRun::Create(folder / "run", SmallModel(), false);
  run.Export(folder / "gpt2");
  TextRun back = TextRun::Import(folder / "gpt2", folder / "back", false);
  const auto ids = data::EncodeText(run.tokenizer(), Repeated(2)).ids;
  run.model().eval();
  EXPECT_EQ(MeasureText(run.model(), ids).nats, MeasureText(back.model(), ids).nats);
  EXPECT_EQ(MeasureText(TextRun::Load(folder / "back").model(), ids).nats,
            MeasureText(back.model(), ids).nats);
}

TEST(TextGenerator, TheSeedDecidesAndStopStringsEnd) {
  const ScratchFolder folder;
  TextRun run = TextRun::Create(folder / "run", SmallModel(data::TokenizerKind::kBytes), false);
  const auto write = [&](std::uint64_t seed, const std::vector<std::string>& stops, TextEnd* end) {
    TextGenerator generator(run.model(), run.tokenizer(), {.stops = stops, .seed = seed});
    generator.Read("é");
    std::string text;
    *end = generator.Write(200, [&](const std::string& piece) { text += piece; });
    return text;
  };
  TextEnd end;
  const std::string text = write(1, {}, &end);
  EXPECT_EQ(end == TextEnd::kTokens || end == TextEnd::kEndMark, true);
  EXPECT_EQ(text, write(1, {}, &end));
  EXPECT_NE(text, write(2, {}, &end));
  // Untrained, it writes any bytes; what is shown is UTF-8 all the same, and ends before a stop string.
  ASSERT_GT(text.size(), 20u);
  std::size_t at = 10;
  while ((text[at] & 0x80) != 0) ++at;
  const std::string stop = text.substr(at, 1);
  EXPECT_EQ(write(1, {stop}, &end), text.substr(0, text.find(stop)));
  EXPECT_EQ(end, TextEnd::kStop);
}

TEST(TextGenerator, APromptThatIsUnknownOrEmptyIsNamed) {
  const ScratchFolder folder;
  TextRun run = TextRun::Create(folder / "run", SmallModel(), false);
  TextGenerator generator(run.model(), run.tokenizer(), {});
  EXPECT_THAT([&] { generator.Read("the Ω"); }, ThrowsMessage<Error>(HasSubstr("character 5 of the prompt")));
  EXPECT_THAT([&] { generator.Read(""); }, ThrowsMessage<Error>(HasSubstr("prompt is empty")));
}

}  // namespace
}  // namespace regard::train
