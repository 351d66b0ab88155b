// Image classifiers: training, run directories and measuring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/error.h"
#include "train/image_run.h"
#include "train/image_task.h"
#include "train/scratch_folder.h"
#include "train/trainer.h"

namespace regard::train {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

// Grey images of 4 x 4 pixels, values up to 16: a bright row (class "row") or column ("column") on noise.
data::ImageSet Lines(std::int64_t count) {
  torch::manual_seed(9);
  Tensor pixels = torch::rand({count, 4, 4}) * 4;
  data::ImageSet images;
  images.rows = images.columns = 4;
  images.white = 16;
  images.classes = {"column", "row"};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = i % 2, at = i / 2 % 4;
    pixels[i].select(label == 1 ? 0 : 1, at).fill_(16);
    images.labels.push_back(label);
  }
  images.pixels.assign(pixels.data_ptr<float>(), pixels.data_ptr<float>() + pixels.numel());
  return images;
}

ImageSetup SmallModel(const char* attention) {
  ImageSetup setup;
  setup.model = {{"model", "image_transformer"},
                 {"rows", 4},
                 {"columns", 4},
                 {"classes", 2},
                 {"embed_dim", 16},
                 {"num_heads", 2},
                 {"num_layers", 1},
                 {"dropout", 0.1},
                 {"attention", attention}};
  // A line crosses the patch above to the left or the one below to the right, and shows its direction there.
  if (std::string(attention) == "hard") setup.model.update({{"patch", 2}, {"glimpses", 2}, {"entropy", 0.1}});
  setup.classes = {"column", "row"};
  setup.white = 16;
  setup.seed = 3;
  return setup;
}

TrainOptions Options(std::int64_t epochs) {
  TrainOptions options;
  options.epochs = epochs;
  options.schedule = {.kind = Schedule::Kind::kCosine, .rate = 0.01, .warmup_steps = 5, .floor = 0.1};
  options.validate_every = 7;
  options.accumulation = 2;
  return options;
}

// Trains to the end in parts that end at these steps.
NamedTensors Train(const std::string& path, const char* attention, const std::vector<std::int64_t>& ends,
                   std::int64_t epochs) {
  ImageRun::Create(path, SmallModel(attention), false);
  const models::ImageBatch images = MakeImageBatch(Lines(40), 16);
  NamedTensors weights;
  for (std::size_t part = 0; part < ends.size(); ++part) {
    ImageRun run = ImageRun::Load(path);
    ImageTask task(
        run.model(), images, {images.images.slice(0, 0, 9), images.labels.slice(0, 0, 9)},
        {.batch_size = 8, .label_smoothing = 0.1, .augmentation = {.shift = 0.3, .rotate = 5, .scale = 0.1}});
    Trainer trainer(task, Options(epochs), &run.directory());
    if (part > 0) trainer.Resume();
    std::int64_t calls = 0, begin = part > 0 ? ends[part - 1] : 0;
    trainer.Run([&] { return begin + calls++ >= ends[part]; });
    weights.clear();
    for (const auto& [name, tensor] : WeightsOf(run.model())) weights.emplace_back(name, tensor.clone());
  }
  return weights;
}

class ImageTasks : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Attention, ImageTasks, testing::Values("soft", "hard"));

TEST_P(ImageTasks, InterruptedAndResumedGivesTheSameBits) {
  const ScratchFolder folder;
  const NamedTensors whole = Train(folder / "whole", GetParam(), {1000}, 6),
                     parts = Train(folder / "parts", GetParam(), {4, 11, 1000}, 6);
  ASSERT_EQ(whole.size(), parts.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(whole[i].second.equal(parts[i].second));
}

TEST_P(ImageTasks, LearnsRowsFromColumns) {
  const ScratchFolder folder;
  Train(folder / "run", GetParam(), {10000}, 60);
  ImageRun run = ImageRun::Load(folder / "run");
  const ImageMeasures measures = MeasureImages(run.model(), MakeImageBatch(Lines(30), 16), 7);
  EXPECT_EQ(measures.images, 30);
  EXPECT_EQ(measures.correct, 30);
  EXPECT_LT(measures.nats / 30, 0.4);
  EXPECT_TRUE(measures.confusion.equal(torch::tensor({{15, 0}, {0, 15}})));
}

TEST(ImageTask, AnEpochIsEveryImageOnceInAnOrderOfItsSeed) {
  const models::ImageBatch images{torch::arange(10).view({10, 1, 1, 1}).to(torch::kFloat), torch::arange(10)};
  struct Recorder : models::ClassificationModel {
    nlohmann::json config() const override { return {}; }
    LossSum Loss(const models::ImageBatch& batch, double, std::uint64_t) override {
      for (std::int64_t i = 0; i < batch.labels.size(0); ++i) seen.push_back(batch.labels[i].item<int>());
      EXPECT_TRUE(batch.images.flatten().equal(batch.labels.to(torch::kFloat)));
      return {};
    }
    models::Classification Classify(const Tensor&) override { return {}; }
    std::vector<int> seen;
  } model;
  ImageTask task(model, images, {}, {.batch_size = 4, .label_smoothing = 0, .augmentation = {}});
  const auto epoch = [&](std::int64_t number, std::uint64_t seed) {
    model.seen.clear();
    const std::int64_t batches = task.StartEpoch(number, seed);
    for (std::int64_t b = 0; b < batches; ++b) task.Loss(b, {}, 0);
    return model.seen;
  };
  const std::vector<int> first = epoch(0, 1);
  EXPECT_THAT(first, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(first, epoch(0, 1));
  EXPECT_NE(first, epoch(1, 1));
  EXPECT_NE(first, epoch(0, 2));
}

TEST(Augment, MovesTurnsAndSizesWhatItIsAskedTo) {
  Tensor dot = torch::zeros({400, 9, 15, 1});
  dot.select(1, 4).select(1, 10).fill_(1);  // 3 pixels right of the middle
  EXPECT_TRUE(Augment(dot, {.shift = 2}, 4).equal(Augment(dot, {.shift = 2}, 4)));
  EXPECT_LT((Augment(dot, {}, 1) - dot).abs().max().item<double>(), 1e-5);

  // The middle of the brightness, in pixels from the middle of the image.
  const auto place = [](const Tensor& images) {
    const Tensor mass = images.squeeze(-1);
    const Tensor y = torch::arange(-4, 5).view({1, 9, 1}).to(torch::kFloat),
                 x = torch::arange(-7, 8).view({1, 1, 15}).to(torch::kFloat);
    const Tensor whole = mass.sum({1, 2});
    return std::pair((mass * x).sum({1, 2}) / whole, (mass * y).sum({1, 2}) / whole);
  };
  const auto [x, y] = place(Augment(dot, {.shift = 2}, 1));
  EXPECT_NEAR((x - 3).abs().max().item<double>(), 2, 0.05);
  EXPECT_NEAR(y.abs().max().item<double>(), 2, 0.05);
  EXPECT_NEAR((x - 3).mean().item<double>(), 0, 0.15);
  const auto [turned_x, turned_y] = place(Augment(dot, {.rotate = 90}, 2));
  EXPECT_NEAR((turned_x.square() + turned_y.square()).sqrt().mean().item<double>(), 3, 0.15);
  EXPECT_NEAR(turned_y.abs().max().item<double>(), 3, 0.3);
  const auto [sized_x, sized_y] = place(Augment(dot, {.scale = 0.5}, 3));
  EXPECT_NEAR(sized_x.max().item<double>(), 4.5, 0.2);
  EXPECT_NEAR(sized_x.min().item<double>(), 2, 0.2);
  EXPECT_NEAR(sized_y.abs().max().item<double>(), 0, 1e-4);
}

TEST(ImageRun, KeepsItsClassesAndScaleAndRefusesImagesThatDoNotFit) {
  const ScratchFolder folder;
  ImageRun::Create(folder / "run", SmallModel("soft"), false);
  EXPECT_EQ(RunDirectory::KindOf(folder / "run"), ImageRun::kKind);
  const ImageRun run = ImageRun::Load(folder / "run");
  EXPECT_THAT(run.classes(), testing::ElementsAre("column", "row"));

  WriteAll(folder / "a.csv", "0,0,0,0,8,8,8,8,0,0,0,0,0,0,0,0,row\n");
  const ImageRun::Images images = run.Read(folder / "a.csv", true);
  EXPECT_EQ(images.batch.images.max().item<float>(), 0.5F);  // of 16, whatever the largest here is
  EXPECT_TRUE(images.batch.labels.equal(torch::tensor({1})));
  WriteAll(folder / "b.csv", "0,0,0,0,8,8,8,8,0\n");
  EXPECT_THAT([&] { run.Read(folder / "b.csv", false); }, ThrowsMessage<Error>(HasSubstr("4 x 4")));
  WriteAll(folder / "c.csv", "0,0,0,0,80,8,8,8,0,0,0,0,0,0,0,0\n");
  EXPECT_THAT([&] { run.Read(folder / "c.csv", false); }, ThrowsMessage<Error>(HasSubstr("values up to 16")));
  WriteAll(folder / "d.csv", "0,0,0,0,8,8,8,8,0,0,0,0,0,0,0,0,line\n");
  EXPECT_THAT([&] { run.Read(folder / "d.csv", true); },
              ThrowsMessage<Error>(HasSubstr("\"line\"; expected one of column, row")));

  ImageSetup setup = SmallModel("soft");
  setup.classes = {"row"};
  ImageRun::Create(folder / "other", setup, false);
  EXPECT_THAT([&] { ImageRun::Load(folder / "other"); }, ThrowsMessage<Error>(HasSubstr("weights expect 2")));
}

}  // namespace
}  // namespace regard::train
