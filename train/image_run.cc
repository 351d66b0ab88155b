#include "train/image_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "engine/base/error.h"
#include "train/image_task.h"

namespace regard::train {
namespace {

// An entry of the configuration, or an error that names it.
template <typename T>
T Entry(const RunDirectory& directory, const char* name, const char* expected) {
  const nlohmann::json value = directory.config().value(name, nlohmann::json());
  try {
    return value.get<T>();
  } catch (const nlohmann::json::exception&) {
    throw Error(fmt::format("{}: \"{}\" is {}; expected {}", directory.File("config.json"), name,
                            value.dump(), expected));
  }
}

}  // namespace

ImageRun ImageRun::Create(const std::string& path, const ImageSetup& setup, bool force) {
  RunDirectory::CheckVacant(path, force);
  torch::manual_seed(setup.seed);
  auto model = models::MakeClassificationModel(setup.model);
  nlohmann::json config = {{"model", model->config()},
                           {"classes", setup.classes},
                           {"white", setup.white},
                           {"training", setup.training}};
  ImageRun run(RunDirectory::Create(
      path, kKind, std::move(config), WeightsOf(*model), [](const std::string&) {}, force));
  run.model_ = std::move(model);
  run.classes_ = setup.classes;
  run.white_ = setup.white;
  return run;
}

ImageRun ImageRun::Load(const std::string& path) {
  ImageRun run(RunDirectory::Open(path, kKind, {"model", "training"}));
  const RunDirectory& directory = run.directory_;
  run.classes_ = Entry<std::vector<std::string>>(directory, "classes", "the names of the classes");
  run.white_ = Entry<double>(directory, "white", "a number");
  run.model_ = models::MakeClassificationModel(directory.config().at("model"));
  const auto expected = run.model_->config().at("classes").get<std::size_t>();
  if (run.classes_.size() != expected) {
    throw Error(
        fmt::format("{}: {} classes, the model's weights expect {}", path, run.classes_.size(), expected));
  }
  directory.LoadWeights(*run.model_);
  run.model_->eval();
  return run;
}

ImageRun::Images ImageRun::Read(const std::string& path, bool labelled, const std::string& label) const {
  const nlohmann::json model = model_->config();
  const auto rows = model.at("rows").get<std::int64_t>(), columns = model.at("columns").get<std::int64_t>(),
             channels = model.at("channels").get<std::int64_t>();
  data::ImageOptions options{
      .labelled = labelled, .label = label, .rows = rows, .columns = columns, .classes = classes_};
  Images images{.set = data::ReadImages(path, options), .batch = {}};
  data::ImageSet& set = images.set;
  const auto size = [](std::int64_t r, std::int64_t c, std::int64_t depth) {
    return fmt::format("{} x {} pixels{}", r, c, depth == 1 ? ", grey" : fmt::format(", {} colours", depth));
  };
  if (set.rows != rows || set.columns != columns || (set.channels != channels && set.channels != 1)) {
    throw Error(fmt::format("{}: images of {}; {} is for {}", path, size(set.rows, set.columns, set.channels),
                            directory_.path(), size(rows, columns, channels)));
  }
  const bool is_csv = std::filesystem::path(path).extension() == ".csv";
  if (is_csv && set.white > white_) {
    throw Error(fmt::format("{}: a pixel of {}; {} was trained on values up to {}", path, set.white,
                            directory_.path(), white_));
  }
  images.batch = MakeImageBatch(set, is_csv ? white_ : set.white);
  images.batch.images = images.batch.images.expand({-1, -1, -1, channels}).contiguous();
  return images;
}

}  // namespace regard::train
