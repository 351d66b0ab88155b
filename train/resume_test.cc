// A training that was interrupted and resumed is the training that never was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <sstream>

#include "engine/base/error.h"
#include "train/interrupt.h"
#include "train/scratch_folder.h"
#include "train/toy_task.h"
#include "train/trainer.h"

namespace regard::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

TrainOptions SixEpochs() {
  TrainOptions options;
  options.epochs = 6;
  options.schedule = {.kind = Schedule::Kind::kCosine, .rate = 0.05, .warmup_steps = 5};
  options.seed = 3;
  options.accumulation = 2;
  options.log_every = 2;
  return options;
}

RunDirectory NewRun(const std::string& path, ToyTask& task) {
  return RunDirectory::Create(
      path, "toy", {{"training", SixEpochs()}}, WeightsOf(task.module()), [](const std::string&) {}, false);
}

// Trains in one go, or in pieces that each end after `pieces[i]` more batches were seen.
struct Outcome {
  NamedTensors weights, optimizer;
  std::string best, metrics;
  TrainResult result;
};

// metrics.jsonl without what depends on the clock.
std::string Timeless(const std::string& text) {
  std::istringstream in(text);
  std::string line, out;
  while (std::getline(in, line)) {
    nlohmann::json json = nlohmann::json::parse(line);
    json.erase("seconds");
    json.erase("tokens_per_second");
    out += json.dump() + "\n";
  }
  return out;
}

Outcome Train(const std::string& path, const std::vector<std::int64_t>& pieces) {
  Outcome outcome;
  for (std::size_t piece = 0; piece <= pieces.size(); ++piece) {
    ToyTask task(10, 0.3);  // 7 batches, 4 steps an epoch
    RunDirectory run = piece == 0 ? NewRun(path, task) : RunDirectory::Open(path, "toy");
    Trainer trainer(task, SixEpochs(), &run);
    if (piece > 0) trainer.Resume();
    const InterruptGuard guard;
    if (piece < pieces.size()) {
      task.before_loss = [&](std::int64_t count) {
        if (count == pieces[piece]) raise(SIGINT);
      };
    }
    outcome.result = trainer.Run(InterruptGuard::Requested);
    EXPECT_EQ(outcome.result.reason, piece < pieces.size() ? StopReason::kInterrupted : StopReason::kEpochs);
  }
  const RunDirectory run = RunDirectory::Open(path, "toy");
  const Checkpoint checkpoint = run.LoadCheckpoint();
  outcome.weights = checkpoint.weights;
  outcome.optimizer = checkpoint.optimizer;
  outcome.best = ReadAll(run.File("model.safetensors"));
  outcome.metrics = Timeless(ReadAll(run.File("metrics.jsonl")));
  return outcome;
}

void ExpectSameBits(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(torch::equal(a[i].second, b[i].second)) << a[i].first;
  }
}

// Text case 18.
TEST(Resume, ContinuesBitForBit) {
  const ScratchFolder folder;
  const Outcome straight = Train(folder / "straight", {});
  EXPECT_EQ(straight.result.steps, 24);
  // In the middle of an accumulated step of the second epoch, at its end, and again later.
  const Outcome pieces = Train(folder / "pieces", {10, 4, 11});
  ExpectSameBits(straight.weights, pieces.weights);
  ExpectSameBits(straight.optimizer, pieces.optimizer);
  EXPECT_EQ(straight.best, pieces.best);
  EXPECT_EQ(straight.metrics, pieces.metrics);
  EXPECT_EQ(straight.result.best_step, pieces.result.best_step);
  EXPECT_EQ(straight.result.best, pieces.result.best);
  EXPECT_EQ(straight.result.tokens, pieces.result.tokens);
}

TEST(Resume, FromAnEarlierCheckpointDropsLaterMetrics) {
  const ScratchFolder folder;
  const Outcome straight = Train(folder / "straight", {});
  ToyTask task(10, 0.3);
  RunDirectory run = NewRun(folder / "killed", task);
  std::int64_t losses = 0;
  TrainOptions options = SixEpochs();
  options.checkpoint_seconds = 0;
  task.before_loss = [&](std::int64_t count) {
    losses = count;
    if (count == 20) throw std::runtime_error("the power went");
  };
  // Stop writing checkpoints at an earlier step than metrics.
  std::string kept;
  const auto keep = [&] {
    if (losses == 11) kept = ReadAll(run.File("optimizer.pt"));
    return false;
  };
  EXPECT_THROW(Trainer(task, options, &run).Run(keep), std::runtime_error);
  WriteAll(run.File("optimizer.pt"), kept);
  WriteAll(run.File("metrics.jsonl"), ReadAll(run.File("metrics.jsonl")) + "{\"step\": 1");

  ToyTask again(10, 0.3);
  RunDirectory reopened = RunDirectory::Open(run.path(), "toy");
  Trainer trainer(again, SixEpochs(), &reopened);
  trainer.Resume();
  trainer.Run();
  ExpectSameBits(straight.weights, reopened.LoadCheckpoint().weights);
  EXPECT_EQ(straight.metrics, Timeless(ReadAll(run.File("metrics.jsonl"))));
}

TEST(Resume, ALaterLimitContinues) {
  const ScratchFolder folder;
  ToyTask task(10);
  RunDirectory run = NewRun(folder / "run", task);
  Trainer(task, SixEpochs(), &run).Run();
  ToyTask more(10);
  TrainOptions options = SixEpochs();
  options.epochs = 8;
  Trainer trainer(more, options, &run);
  trainer.Resume();
  EXPECT_EQ(trainer.Run().steps, 32);
  EXPECT_EQ(more.losses, 14);
}

TEST(Resume, OtherDataIsRefused) {
  const ScratchFolder folder;
  ToyTask task(10), other(10, 0, 100);
  RunDirectory run = NewRun(folder / "run", task);
  Trainer(task, SixEpochs(), &run).Run();
  Trainer trainer(other, SixEpochs(), &run);
  EXPECT_THAT([&] { trainer.Resume(); },
              ThrowsMessage<Error>(HasSubstr("was training on 7 batches an epoch, the data now gives 10")));
}

TEST(Resume, MissingOrCutCheckpointIsNamed) {
  const ScratchFolder folder;
  ToyTask task(10);
  RunDirectory run = NewRun(folder / "run", task);
  Trainer trainer(task, SixEpochs(), &run);
  EXPECT_THAT([&] { trainer.Resume(); },
              ThrowsMessage<Error>(run.File("optimizer.pt") + " is missing: there is no training to resume"));
  Trainer(task, SixEpochs(), &run).Run();
  const std::string whole = ReadAll(run.File("optimizer.pt"));
  WriteAll(run.File("optimizer.pt"), whole.substr(0, whole.size() / 2));
  EXPECT_THAT([&] { trainer.Resume(); },
              ThrowsMessage<Error>(AllOf(StartsWith(run.File("optimizer.pt") + " is cut short or damaged"))));
}

TEST(Trainer, NaNLossLeavesTheLastGoodCheckpoint) {
  const ScratchFolder folder;
  ToyTask task(10);
  RunDirectory run = NewRun(folder / "run", task);
  TrainOptions options = SixEpochs();
  options.max_steps = 6;
  Trainer(task, options, &run).Run();
  const std::string weights = ReadAll(run.File("model.safetensors")),
                    state = ReadAll(run.File("optimizer.pt"));
  ToyTask again(10);
  again.before_loss = [&](std::int64_t count) { again.factor = count == 3 ? std::nan("") : 1; };
  Trainer trainer(again, SixEpochs(), &run);
  trainer.Resume();
  EXPECT_THAT([&] { trainer.Run(); },
              ThrowsMessage<Error>("the loss is nan at step 8 (epoch 2): try a smaller learning rate; " +
                                   run.path() + " keeps the checkpoint of step 6"));
  EXPECT_EQ(weights, ReadAll(run.File("model.safetensors")));
  EXPECT_EQ(state, ReadAll(run.File("optimizer.pt")));
}

TEST(Trainer, FullDiskIsOneErrorAndLeavesTheLastGoodCheckpoint) {
  const ScratchFolder folder;
  ToyTask task(10);
  RunDirectory run = NewRun(folder / "run", task);
  TrainOptions options = SixEpochs();
  options.max_steps = 6;
  Trainer(task, options, &run).Run();
  const std::string state = ReadAll(run.File("optimizer.pt"));

  // Files that may not grow past 1000 bytes act like a full disk.
  rlimit previous;
  getrlimit(RLIMIT_FSIZE, &previous);
  const rlimit small = {1000, previous.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  Trainer trainer(task, SixEpochs(), &run);
  trainer.Resume();
  std::string message;
  try {
    trainer.Run();
  } catch (const Error& e) {
    message = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &previous);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr(run.path()), HasSubstr("File too large")));
  EXPECT_EQ(state, ReadAll(run.File("optimizer.pt")));
  for (const auto& entry : std::filesystem::directory_iterator(run.path())) {
    EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("tmp")));
  }
}

}  // namespace
}  // namespace regard::train
