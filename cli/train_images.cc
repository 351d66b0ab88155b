// regard train images: from labelled images to a run directory.
#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
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
#include "cli/training_report.h"
#include "data/images.h"
#include "engine/base/error.h"
#include "train/image_run.h"
#include "train/image_task.h"
#include "train/interrupt.h"

namespace regard::cli {
namespace {

// The options as typed.
struct ImageOptions : RunOptions {
  Common common;
  std::string data, valid, label;
  std::int64_t rows = 0, columns = 0, test_rows = 0;
  double valid_fraction = 0.1;

  std::string model = "image_transformer", attention = "soft";
  std::int64_t patch = 2, layers = 3, heads = 4, embed_dim = 64, ffn_dim = 0, glimpses = 0;
  double dropout = 0.1, entropy = 0.01;

  std::int64_t batch_size = 64;
  double label_smoothing = 0, shift = 0, rotate = 0, scale = 0;
  std::string metric = "loss";
  LoopOptions loop{.epochs = 50, .warmup = 50, .weight_decay = 0.05, .schedule = "cosine"};
};

struct ImageParts {
  data::ImageSet all;  // for sizes, classes and scale
  data::ImageSet training, validation, test;
  std::string fingerprint;
};

std::string Fingerprint(const data::ImageSet& images) {
  const auto bytes = [](const auto& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  Hash hash;
  hash.Add(bytes(images.pixels)).Add(bytes(images.labels));
  for (const std::string& name : images.classes) hash.Add(name);
  return hash.Text();
}

// Of the images of each class, the last part is validated on; all others are trained on.
void SplitByClass(const data::ImageSet& images, std::int64_t count, double fraction, ImageParts* parts) {
  std::vector<std::int64_t> of_class(images.classes.size()), seen(images.classes.size());
  for (std::int64_t i = 0; i < count; ++i)
    ++of_class[static_cast<std::size_t>(images.labels[static_cast<std::size_t>(i)])];
  std::vector<std::int64_t> training, validation;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::size_t>(images.labels[static_cast<std::size_t>(i)]);
    const auto kept = std::llround(fraction * static_cast<double>(of_class[label]));
    (seen[label]++ < of_class[label] - kept ? training : validation).push_back(i);
  }
  parts->training = data::SelectImages(images, training);
  parts->validation = data::SelectImages(images, validation);
}

ImageParts ReadParts(const ImageOptions& o) {
  ImageParts parts;
  parts.all =
      data::ReadImages(o.data, {.label = o.label, .rows = o.rows, .columns = o.columns, .classes = {}});
  const data::ImageSet& all = parts.all;
  if (o.test_rows >= all.size()) {
    throw UsageError(
        fmt::format("--test-rows {}: {} has {}; expected fewer, so that some are left to train on",
                    o.test_rows, o.data, Count(all.size(), "image")));
  }
  const std::int64_t count = all.size() - o.test_rows;
  std::vector<std::int64_t> test;
  for (std::int64_t i = count; i < all.size(); ++i) test.push_back(i);
  parts.test = data::SelectImages(all, test);
  SplitByClass(all, count, o.valid.empty() ? o.valid_fraction : 0, &parts);
  parts.fingerprint = Fingerprint(all);
  return parts;
}

// The patches of an image. Throws UsageError where they do not tile it, or are fewer than the glimpses.
std::int64_t PatchesOf(const ImageOptions& o, const data::ImageSet& images) {
  if (images.rows % o.patch != 0 || images.columns % o.patch != 0) {
    throw UsageError(fmt::format("--patch {}: expected a divisor of both sizes of images of {} x {} pixels",
                                 o.patch, images.rows, images.columns));
  }
  const std::int64_t patches = (images.rows / o.patch) * (images.columns / o.patch);
  if (o.glimpses > patches) {
    throw UsageError(
        fmt::format("--glimpses {}: expected at most the {} patches of an image", o.glimpses, patches));
  }
  return patches;
}

train::ImageRun MakeRun(const ImageOptions& o, const ImageParts& parts, nlohmann::json arguments) {
  const std::int64_t patches = PatchesOf(o, parts.all);
  train::ImageSetup setup;
  setup.model = {{"model", o.model},
                 {"rows", parts.all.rows},
                 {"columns", parts.all.columns},
                 {"channels", parts.all.channels},
                 {"classes", parts.all.classes.size()},
                 {"patch", o.patch},
                 {"embed_dim", o.embed_dim},
                 {"num_heads", o.heads},
                 {"num_layers", o.layers},
                 {"ffn_dim", o.ffn_dim > 0 ? o.ffn_dim : 4 * o.embed_dim},
                 {"dropout", o.dropout},
                 {"attention", o.attention}};
  if (o.attention == "hard") {
    setup.model["glimpses"] = o.glimpses > 0 ? o.glimpses : std::max<std::int64_t>(patches / 4, 1);
    setup.model["entropy"] = o.entropy;
  }
  setup.classes = parts.all.classes;
  setup.white = parts.all.white;
  setup.training = {{"arguments", std::move(arguments)}, {"data", parts.fingerprint}};
  setup.seed = static_cast<std::uint64_t>(o.loop.seed);
  return train::ImageRun::Create(o.run, setup, o.force);
}

train::ImageRun ResumeRun(const ImageOptions& o, const ImageParts& parts) {
  train::ImageRun run = train::ImageRun::Load(o.run);
  if (run.training().at("data") != parts.fingerprint) {
    throw Error(fmt::format(
        "{}: the images read from {} are not those that the run was trained on; --resume needs the same",
        o.run, o.data));
  }
  return run;
}

void SayTest(train::ImageRun& run, const ImageParts& parts, const Messages& messages) {
  if (parts.test.size() == 0) return;
  const train::ImageMeasures measures =
      train::MeasureImages(run.model(), train::MakeImageBatch(parts.test, parts.all.white));
  const auto count = static_cast<double>(measures.images);
  messages.Fact("test", fmt::format("{:.1f} % of the last {} right, loss {:.4f}",
                                    100 * static_cast<double>(measures.correct) / count,
                                    Count(measures.images, "image"), measures.nats / count));
}

train::TrainResult Train(const ImageOptions& o, nlohmann::json arguments, const Messages& messages) {
  if (!o.resume) train::RunDirectory::CheckVacant(o.run, o.force);
  const ImageParts parts = ReadParts(o);
  train::ImageRun run = o.resume ? ResumeRun(o, parts) : MakeRun(o, parts, std::move(arguments));
  models::ImageBatch validation = o.valid.empty() ? train::MakeImageBatch(parts.validation, parts.all.white)
                                                  : run.Read(o.valid, true, o.label).batch;
  messages.Fact("read", fmt::format("{} of {} x {} pixels in {} classes to train on, {} to validate on{}",
                                    Count(parts.training.size(), "image"), parts.all.rows, parts.all.columns,
                                    parts.all.classes.size(), Grouped(validation.images.size(0)),
                                    parts.test.size() > 0
                                        ? fmt::format(", {} kept for the test", Grouped(parts.test.size()))
                                        : ""));
  if (validation.images.size(0) == 0 && o.loop.patience > 0)
    throw UsageError("--patience needs images to validate on: give --valid or a larger --valid-fraction");
  SayModel(run.model().config().at("model"), run.model(), messages);
  if (o.attention == "hard") {
    const nlohmann::json model = run.model().config();
    messages.Fact("looks at", fmt::format("{} of {} patches of an image", model.at("glimpses").dump(),
                                          PatchesOf(o, parts.all)));
  }

  train::TrainOptions options = MakeTrainOptions(o.loop);
  options.adam.decay_matrices_only = true;
  options.best = o.metric;
  options.maximize = o.metric != "loss";
  train::ImageTask task(run.model(), train::MakeImageBatch(parts.training, parts.all.white),
                        std::move(validation),
                        {.batch_size = o.batch_size,
                         .label_smoothing = o.label_smoothing,
                         .augmentation = {.shift = o.shift, .rotate = o.rotate, .scale = o.scale}});
  train::Progress progress(messages.quiet() ? nullptr : stderr);
  const train::InterruptGuard guard;
  train::Trainer trainer(task, options, &run.directory(), &progress);
  if (o.resume) trainer.Resume();
  const train::TrainResult result = trainer.Run([] { return train::InterruptGuard::Requested(); });
  progress.Finish();
  SayTrained(result, "images", o.metric, messages);
  if (result.reason != train::StopReason::kInterrupted) SayTest(run, parts, messages);
  return result;
}

void Complete(CLI::App& command, ImageOptions& o) {
  CheckRunOptions(o);
  if (o.resume)
    return ApplyResumed(command,
                        train::ImageRun::Load(o.run).training().value("arguments", nlohmann::json::object()));
  if (o.data.empty())
    throw UsageError("DATA is missing: a CSV or IDX file of images, or a folder of folders of PNG files");
  if (!o.preset.empty()) ApplyPreset(command, FindPreset(o.preset, ImagePresets()));
  if (o.glimpses > 0 && o.attention != "hard") throw UsageError("--glimpses needs --attention hard");
  if (o.test_rows > 0 && std::filesystem::is_directory(o.data))
    throw UsageError("--test-rows is for files; of a folder, keep the test images in another one");
  CheckHeads("--embed-dim", o.embed_dim, o.heads);
}

void RunTrainImages(CLI::App& command, ImageOptions& o) {
  Complete(command, o);
  const Messages messages(o.common.quiet);
  UseThreads(o.common);
  const train::TrainResult result = Train(o, TrainingArguments(command), messages);
  EndIfInterrupted(result, "train images", o.run, messages);
  messages.Say("\nNow type:  {} classify {} IMAGES --picture looked.svg", Program(), o.run);
}

void AddModelOptions(CLI::App& command, ImageOptions& o) {
  const std::string group = "Model";
  constexpr std::int64_t kWidest = 65536;
  AddChoice(command, "--model", o.model, {"image_transformer"}, "The network")->group(group);
  AddInteger(command, "--patch", "N", o.patch, 1,
             "Pixels a side of what a token stands for, a divisor of both sizes; 1: pixels", kWidest)
      ->group(group);
  AddChoice(command, "--attention", o.attention, {"soft", "hard"},
            "Weigh all patches, or look at a few, one after the other")
      ->group(group);
  AddInteger(command, "--glimpses", "N", o.glimpses, 0,
             "Hard: patches looked at; 0: a quarter of those of an image", 1 << 20)
      ->group(group);
  AddReal(command, "--entropy", "X", o.entropy, {.min = 0, .max = 1, .below = true},
          "Hard: what keeping the choice open is worth, in nats of loss for a nat")
      ->group(group);
  AddInteger(command, "--layers", "N", o.layers, 1, "Transformer layers", 512)->group(group);
  AddInteger(command, "--heads", "N", o.heads, 1, "Attention heads of a layer; a divisor of the width",
             kWidest)
      ->group(group);
  AddInteger(command, "--embed-dim", "N", o.embed_dim, 1, "Width of the embeddings and layers", kWidest)
      ->group(group);
  AddInteger(command, "--ffn-dim", "N", o.ffn_dim, 0, "Inner width of the feed-forward part; 0: four times",
             4 * kWidest)
      ->group(group);
  AddReal(command, "--dropout", "P", o.dropout, {.min = 0, .max = 1, .below = true},
          "Of embeddings, attention weights and layers")
      ->group(group);
}

void AddTrainingOptions(CLI::App& command, ImageOptions& o) {
  const std::string group = "Training";
  AddInteger(command, "--batch-size", "N", o.batch_size, 1, "Images of a batch", 1 << 20)->group(group);
  AddReal(command, "--label-smoothing", "X", o.label_smoothing, {.min = 0, .max = 1, .below = true},
          "Probability taken from the right class")
      ->group(group);
  AddReal(command, "--shift", "PIXELS", o.shift, {.min = 0},
          "Move each image by up to so much each time it is trained on")
      ->group(group);
  AddReal(command, "--rotate", "DEGREES", o.rotate, {.min = 0, .max = 180}, "Turn it by up to so much")
      ->group(group);
  AddReal(command, "--scale", "X", o.scale, {.min = 0, .max = 10},
          "Make it larger or smaller by up to this part of its size")
      ->group(group);
  AddChoice(command, "--metric", o.metric, {"loss", "accuracy"},
            "The measure of validation that decides which weights are kept")
      ->group(group);
  AddLoopOptions(command, o.loop);
}

void AddOptions(CLI::App& command, ImageOptions& o) {
  AddText(command, "DATA", "", o.data,
          "Images with their classes: a .csv file with one image a line, an IDX file (MNIST's), or a folder "
          "with a folder of PNG files for each class");
  AddRunOptions(command, o, ImagePresets());
  AddText(command, "--label", "COLUMN", o.label,
          "CSV: the class's column, by name or number from 1, else label, class or the last; IDX: the file "
          "of classes");
  AddInteger(command, "--rows", "N", o.rows, 0, "CSV: rows of an image; 0: a square", 1 << 20);
  AddInteger(command, "--columns", "N", o.columns, 0, "CSV: columns of an image; 0: a square", 1 << 20);
  AddInteger(command, "--test-rows", "N", o.test_rows, 0,
             "The last images of DATA: neither trained nor validated on, measured at the end");
  AddText(command, "--valid", "DATA", o.valid, "Images to validate on");
  AddReal(command, "--valid-fraction", "X", o.valid_fraction, {.min = 0, .max = 1, .below = true},
          "Without --valid: the last part of each class, to validate on");
  AddModelOptions(command, o);
  AddTrainingOptions(command, o);
  AddCommon(command, o.common);
}

}  // namespace

void AddTrainImages(CLI::App& train) {
  auto options = std::make_shared<ImageOptions>();
  CLI::App& command = AddCommand(
      train, "images",
      "Train a classifier on images\n\n"
      "An image is a sequence of patches. With soft attention all of them are weighed; with hard attention "
      "the model looks at --glimpses of them, each chosen by what it saw before. The best weights by "
      "validation are kept in RUN. Ctrl-C saves; --resume goes on.",
      "regard train images digits.csv -o runs/digits --preset digits\n"
      "regard train images digits.csv -o runs/glimpses --preset digits-hard\n"
      "regard train images train-images-idx3-ubyte.gz -o runs/mnist --patch 4\n"
      "regard train images photos/ -o runs/photos --patch 8 --shift 4");
  AddOptions(command, *options);
  command.callback([options, &command] { RunTrainImages(command, *options); });
}

}  // namespace regard::cli
