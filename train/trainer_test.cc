#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <set>

#include "engine/base/error.h"
#include "train/interrupt.h"
#include "train/toy_task.h"

namespace regard::train {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TrainOptions Quick() {
  TrainOptions options;
  options.epochs = 3;
  options.schedule.rate = 0.02;
  options.seed = 11;
  return options;
}

double LargestDifference(const ToyTask& a, const ToyTask& b) {
  double difference = 0;
  for (const auto& item : a.model->named_parameters()) {
    const torch::Tensor other = b.model->named_parameters()[item.key()];
    difference = std::max(difference, (item.value() - other).abs().max().item<double>());
  }
  return difference;
}

TEST(Trainer, LowersTheLossAndKeepsTheBest) {
  ToyTask task(16);
  task.module().eval();
  const double before = task.Validate({}).at("loss");
  TrainOptions options = Quick();
  options.epochs = 40;
  const TrainResult result = Trainer(task, options).Run();
  EXPECT_EQ(result.reason, StopReason::kEpochs);
  EXPECT_EQ(result.steps, 160);
  EXPECT_EQ(result.epochs, 40);
  EXPECT_EQ(result.tokens, 40 * 64);
  EXPECT_LT(result.best, before / 4);
  EXPECT_DOUBLE_EQ(task.Validate({}).at("loss"), result.best);
}

TEST(Trainer, AccumulatedBatchesEqualOneLargeBatch) {
  ToyTask small(16), large(64);
  TrainOptions options = Quick();
  options.epochs = 5;
  options.clip = 0.1;
  options.accumulation = 4;
  EXPECT_EQ(Trainer(small, options).Run().steps, 5);
  options.accumulation = 1;
  EXPECT_EQ(Trainer(large, options).Run().steps, 5);
  EXPECT_LT(LargestDifference(small, large), 2e-6);
}

TEST(Trainer, SharesEqualTheWholeBatch) {
  for (const std::int64_t shares : {3, 20}) {  // 20: more than a batch has rows
    ToyTask whole(16), shared(16);
    TrainOptions options = Quick();
    options.clip = 0.1;
    Trainer(whole, options).Run();
    options.shares = shares;
    const TrainResult result = Trainer(shared, options).Run();
    EXPECT_EQ(result.tokens, 3 * 64);
    EXPECT_LT(LargestDifference(whole, shared), 2e-6) << shares;
  }
}

TEST(Trainer, AShortLastGroupIsNormalisedByItsOwnTokens) {
  // 64 examples in batches of 24: 24, 24, 16; two a step: 48 and 16.
  ToyTask grouped(24);
  TrainOptions options = Quick();
  options.epochs = 1;
  options.accumulation = 2;
  EXPECT_EQ(Trainer(grouped, options).Run().steps, 2);
  ToyTask plain(48);
  options.accumulation = 1;
  EXPECT_EQ(Trainer(plain, options).Run().steps, 2);
  EXPECT_LT(LargestDifference(grouped, plain), 2e-6);
}

TEST(Trainer, SameOptionsSameBitsWithDropout) {
  ToyTask a(16, 0.5), b(16, 0.5), other(16, 0.5);
  Trainer(a, Quick()).Run();
  torch::rand({5});  // what torch's generator did before does not matter
  Trainer(b, Quick()).Run();
  EXPECT_EQ(LargestDifference(a, b), 0);
  EXPECT_EQ(a.seeds, b.seeds);
  EXPECT_EQ(std::set<std::uint64_t>(a.seeds.begin(), a.seeds.end()).size(), a.seeds.size());
  TrainOptions options = Quick();
  options.seed = 12;
  Trainer(other, options).Run();
  EXPECT_GT(LargestDifference(a, other), 0);
}

TEST(Trainer, PatienceStopsAndTheBestWeightsComeBack) {
  ToyTask task(16);
  const std::vector<double> losses = {3, 1, 2, 2, 0.5};
  torch::Tensor at_best;
  task.validation = [&](std::int64_t count) -> Measures {
    if (count == 2) at_best = task.model->first->weight.detach().clone();
    return {{"loss", losses[static_cast<std::size_t>(count - 1)]}};
  };
  TrainOptions options = Quick();
  options.epochs = 0;
  options.patience = 2;
  const TrainResult result = Trainer(task, options).Run();
  EXPECT_EQ(result.reason, StopReason::kPatience);
  EXPECT_EQ(task.validations, 4);
  EXPECT_EQ(result.best, 1);
  EXPECT_EQ(result.best_step, 8);
  EXPECT_TRUE(torch::equal(task.model->first->weight, at_best));
}

TEST(Trainer, KeepsTheBestByAnyMeasureMaximised) {
  ToyTask task(16);
  task.validation = [&](std::int64_t count) -> Measures {
    return {{"loss", 1.0 * count}, {"bleu", count == 2 ? 50.0 : 10.0}};
  };
  TrainOptions options = Quick();
  options.best = "bleu";
  options.maximize = true;
  options.validate_every = 3;
  const TrainResult result = Trainer(task, options).Run();
  EXPECT_EQ(task.validations, 4);
  EXPECT_EQ(result.best_step, 6);
  EXPECT_EQ(result.best, 50);
  options.best = "blue";
  EXPECT_THAT(
      [&] { Trainer(task, options).Run(); },
      ThrowsMessage<UsageError>("unknown measure \"blue\" to keep the best by: expected one of bleu, loss"));
}

TEST(Trainer, StopsAtStepsAndMinutes) {
  ToyTask task(16);
  TrainOptions options = Quick();
  options.max_steps = 5;
  TrainResult result = Trainer(task, options).Run();
  EXPECT_EQ(result.reason, StopReason::kSteps);
  EXPECT_EQ(result.steps, 5);
  EXPECT_EQ(task.validations, 2);  // after the epoch, and at the end
  options.epochs = options.max_steps = 0;
  options.max_minutes = 0.001;
  result = Trainer(task, options).Run();
  EXPECT_EQ(result.reason, StopReason::kMinutes);
  EXPECT_NEAR(result.seconds, 0.06, 0.05);
}

TEST(Trainer, NaNLossIsAnErrorThatNamesTheStep) {
  ToyTask task(16);
  task.before_loss = [&](std::int64_t count) { task.factor = count == 6 ? std::nan("") : 1; };
  EXPECT_THAT(
      [&] { Trainer(task, Quick()).Run(); },
      ThrowsMessage<Error>("the loss is nan at step 6 (epoch 2): try a smaller learning rate; nothing was "
                           "saved"));
}

TEST(Trainer, NonFiniteGradientStopsOrIsSkippedAndNeverReachesTheWeights) {
  const auto poison = [](ToyTask& task) {
    task.before_loss = [&task](std::int64_t count) { task.poison = count == 6; };
  };
  ToyTask stopping(16), skipping(16);
  poison(stopping);
  poison(skipping);
  EXPECT_THAT([&] { Trainer(stopping, Quick()).Run(); },
              ThrowsMessage<Error>(HasSubstr("at step 6 (epoch 2)")));
  for (const torch::Tensor& parameter : stopping.model->parameters()) {
    EXPECT_TRUE(parameter.isfinite().all().item<bool>());
  }
  TrainOptions options = Quick();
  options.non_finite = NonFinite::kSkip;
  const TrainResult result = Trainer(skipping, options).Run();
  EXPECT_EQ(result.skipped, 1);
  EXPECT_EQ(result.steps, 12);
  EXPECT_TRUE(std::isfinite(result.best));
}

TEST(Trainer, OptionsThatCannotWorkAreRefused) {
  ToyTask task(16);
  TrainOptions options = Quick();
  options.epochs = 0;
  EXPECT_THAT([&] { Trainer(task, options); }, ThrowsMessage<UsageError>(HasSubstr("training needs an end")));
  options.max_minutes = 1;
  options.schedule.kind = Schedule::Kind::kCosine;
  EXPECT_THAT([&] { Trainer(task, options); }, ThrowsMessage<UsageError>(HasSubstr("cosine")));
  options = Quick();
  options.accumulation = 0;
  EXPECT_THAT([&] { Trainer(task, options); },
              ThrowsMessage<UsageError>("accumulation is 0, expected at least 1"));
  options = Quick();
  options.shares = 0;
  EXPECT_THAT([&] { Trainer(task, options); }, ThrowsMessage<UsageError>("shares is 0, expected at least 1"));
}

TEST(Trainer, FirstSignalStopsAfterTheStep) {
  ToyTask task(16);
  task.before_loss = [](std::int64_t count) {
    if (count == 6) raise(SIGINT);
  };
  const InterruptGuard guard;
  const TrainResult result = Trainer(task, Quick()).Run(InterruptGuard::Requested);
  EXPECT_EQ(result.reason, StopReason::kInterrupted);
  EXPECT_EQ(result.steps, 6);
}

TEST(Trainer, SecondSignalEndsAtOnce) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const InterruptGuard guard;
        raise(SIGINT);
        if (InterruptGuard::Requested()) raise(SIGINT);
        std::exit(0);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(TrainOptions, SurviveJson) {
  TrainOptions options = Quick();
  options.schedule.kind = Schedule::Kind::kInverseSqrt;
  options.schedule.rate = 0.1 + 0.2;
  options.non_finite = NonFinite::kSkip;
  options.best = "bleu";
  options.seed = std::numeric_limits<std::uint64_t>::max();
  const nlohmann::json json = options;
  EXPECT_EQ(nlohmann::json(nlohmann::json::parse(json.dump()).get<TrainOptions>()), json);
  nlohmann::json wrong = json;
  wrong["clip"] = "much";
  EXPECT_THAT([&] { wrong.get<TrainOptions>(); },
              ThrowsMessage<Error>("training options: \"clip\" is \"much\", of the wrong type"));
  wrong.erase("clip");
  EXPECT_THAT([&] { wrong.get<TrainOptions>(); },
              ThrowsMessage<Error>("training options: \"clip\" is missing"));
}

}  // namespace
}  // namespace regard::train
