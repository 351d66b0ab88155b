#include "train/image_task.h"

#include <algorithm>
#include <numbers>
#include <utility>

#include "data/random.h"
#include "engine/base/error.h"

namespace regard::train {
namespace {

namespace F = torch::nn::functional;
using torch::Tensor;

// One tensor of the parts; undefined where they are.
Tensor Joined(const std::vector<Tensor>& parts) {
  return parts.empty() || !parts.front().defined() ? Tensor() : torch::cat(parts);
}

// [N], even in -most .. most
Tensor Drawn(std::int64_t count, double most, const torch::Generator& generator) {
  return (2 * torch::rand({count}, generator) - 1) * most;
}

}  // namespace

models::ImageBatch MakeImageBatch(const data::ImageSet& images, double white) {
  models::ImageBatch batch;
  batch.images = torch::tensor(images.pixels)
                     .div_(white)
                     .view({images.size(), images.rows, images.columns, images.channels});
  if (!images.labels.empty()) batch.labels = torch::tensor(images.labels);
  return batch;
}

// An output pixel at p, in -1 .. 1 from edge to edge, is taken from A p + b (Jaderberg et al. 2015, section
// 3.2). With r = columns / rows the turn keeps angles where the sides differ.
Tensor Augment(const Tensor& images, const Augmentation& augmentation, std::uint64_t seed) {
  const torch::Generator generator = at::detail::createCPUGenerator(seed);
  const std::int64_t count = images.size(0);
  const auto rows = static_cast<double>(images.size(1)), columns = static_cast<double>(images.size(2));
  const Tensor angle = Drawn(count, augmentation.rotate * std::numbers::pi / 180, generator);
  const Tensor size = Drawn(count, std::log1p(augmentation.scale), generator).exp();
  const Tensor right = Drawn(count, 2 * augmentation.shift / columns, generator);
  const Tensor down = Drawn(count, 2 * augmentation.shift / rows, generator);
  const Tensor c = angle.cos() / size, s = angle.sin() / size;
  const Tensor matrix = torch::stack({c, -s * (rows / columns), right, s * (columns / rows), c, down}, 1);
  const Tensor planes = images.permute({0, 3, 1, 2});
  const Tensor grid = F::affine_grid(matrix.view({count, 2, 3}), planes.sizes(), /*align_corners=*/false);
  const auto how =
      F::GridSampleFuncOptions().mode(torch::kBilinear).padding_mode(torch::kBorder).align_corners(false);
  return F::grid_sample(planes, grid, how).permute({0, 2, 3, 1}).contiguous();
}

ImageMeasures MeasureImages(models::ClassificationModel& model, const models::ImageBatch& images,
                            std::int64_t batch_size, const std::function<bool()>& stop) {
  torch::NoGradGuard no_grad;
  std::vector<Tensor> log_probs, weights, glimpses;
  for (const Tensor& part : images.images.split(batch_size)) {
    if (stop()) return {};
    const models::Classification told = model.Classify(part);
    log_probs.push_back(told.log_probs);
    weights.push_back(told.weights);
    glimpses.push_back(told.glimpses);
  }
  ImageMeasures result;
  result.images = images.images.size(0);
  result.classification = {Joined(log_probs), Joined(weights), Joined(glimpses)};
  if (!images.labels.defined() || result.images == 0) return result;
  const Tensor& all = result.classification.log_probs;
  const Tensor told = all.argmax(1);
  const std::int64_t classes = all.size(1);
  result.nats = -all.gather(1, images.labels.unsqueeze(1)).sum(torch::kDouble).item<double>();
  result.correct = told.eq(images.labels).sum().item<std::int64_t>();
  result.confusion =
      torch::bincount(images.labels * classes + told, {}, classes * classes).view({classes, classes});
  return result;
}

models::Classification ClassifyImages(models::ClassificationModel& model, const Tensor& images,
                                      std::int64_t batch_size) {
  return MeasureImages(model, {images, {}}, batch_size).classification;
}

ImageTask::ImageTask(models::ClassificationModel& model, models::ImageBatch training,
                     models::ImageBatch validation, const ImageTaskOptions& options)
    : model_(model), training_(std::move(training)), validation_(std::move(validation)), options_(options) {
  if (!training_.images.defined() || training_.images.size(0) == 0)
    throw Error("no image is left to train on");
}

std::int64_t ImageTask::StartEpoch(std::int64_t epoch, std::uint64_t seed) {
  const std::int64_t count = training_.images.size(0);
  order_ = torch::arange(count, torch::kLong);
  auto* order = order_.data_ptr<std::int64_t>();
  data::Random random(data::Mix(data::Mix(seed) + static_cast<std::uint64_t>(epoch)));
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(order[i], order[random.Below(static_cast<std::uint64_t>(i) + 1)]);
  return (count + options_.batch_size - 1) / options_.batch_size;
}

LossSum ImageTask::Loss(std::int64_t batch, const Share& share, std::uint64_t seed) {
  const std::int64_t begin = batch * options_.batch_size;
  const Tensor rows = order_.slice(0, begin + share.index, begin + options_.batch_size, share.count);
  if (rows.size(0) == 0) return {};
  models::ImageBatch images{training_.images.index_select(0, rows), training_.labels.index_select(0, rows)};
  if (options_.augmentation.any()) images.images = Augment(images.images, options_.augmentation, seed);
  return model_.Loss(images, options_.label_smoothing, seed);
}

Measures ImageTask::Validate(const std::function<bool()>& stop) {
  if (!validation_.images.defined() || validation_.images.size(0) == 0) return {};
  const ImageMeasures measures = MeasureImages(model_, validation_, 256, stop);
  if (measures.images == 0) return {};
  const auto count = static_cast<double>(measures.images);
  return {{"loss", measures.nats / count}, {"accuracy", static_cast<double>(measures.correct) / count}};
}

}  // namespace regard::train
