#include "cli/image_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "cli/text.h"
#include "engine/base/error.h"
#include "train/image_task.h"

namespace regard::cli {
namespace {

// Row after row of a tensor as numbers.
template <typename T>
std::vector<T> RowOf(const torch::Tensor& tensor, std::int64_t row) {
  const torch::Tensor values = tensor[row].contiguous();
  return {values.data_ptr<T>(), values.data_ptr<T>() + values.numel()};
}

// True classes in rows, told ones in columns; nothing is written where there is none.
void PrintConfusion(const torch::Tensor& confusion, const std::vector<std::string>& classes, Output& out) {
  std::size_t label = Columns("true \\ told"), cell = 3;
  for (const std::string& name : classes) {
    label = std::max(label, Columns(name));
    cell = std::max(cell, Columns(name));
  }
  cell = std::max(cell, std::to_string(confusion.max().item<std::int64_t>()).size());
  const auto right = [](const std::string& text, std::size_t width) {
    return fmt::format("{:{}}{}", "", width - std::min(width, Columns(text)), text);
  };
  out.Print("\n{}", Pad("true \\ told", label));
  for (const std::string& name : classes) out.Print("  {}", right(name, cell));
  out.Write("\n");
  for (std::size_t i = 0; i < classes.size(); ++i) {
    out.Write(Pad(classes[i], label));
    for (const std::int64_t count : RowOf<std::int64_t>(confusion, static_cast<std::int64_t>(i)))
      out.Print("  {}", right(count > 0 ? std::to_string(count) : "·", cell));
    out.Write("\n");
  }
}

}  // namespace

train::ImageRun::Images ChooseImages(train::ImageRun::Images images, std::int64_t limit, std::int64_t last) {
  if (limit > 0 && last > 0) throw UsageError("--limit and --last exclude each other");
  const std::int64_t count = images.set.size(), kept = std::max(limit, last);
  if (kept == 0) return images;
  if (kept > count) {
    throw UsageError(fmt::format("{} {}: there {} {}", limit > 0 ? "--limit" : "--last", kept,
                                 count == 1 ? "is" : "are", Count(count, "image")));
  }
  const std::int64_t begin = last > 0 ? count - kept : 0;
  std::vector<std::int64_t> indices(static_cast<std::size_t>(kept));
  std::iota(indices.begin(), indices.end(), begin);
  images.set = data::SelectImages(images.set, indices);
  images.batch.images = images.batch.images.narrow(0, begin, kept);
  if (images.batch.labels.defined()) images.batch.labels = images.batch.labels.narrow(0, begin, kept);
  return images;
}

view::ImageDocument PictureOf(const train::ImageRun::Images& images,
                              const models::Classification& classification,
                              const std::vector<std::string>& classes,
                              const std::vector<std::int64_t>& indices, std::int64_t patch) {
  view::ImageDocument document;
  for (const std::int64_t i : indices) {
    const torch::Tensor log_probs = classification.log_probs[i];
    const std::int64_t told = log_probs.argmax().item<std::int64_t>();
    view::ImagePanel panel;
    panel.rows = images.set.rows;
    panel.columns = images.set.columns;
    panel.channels = images.batch.images.size(3);
    panel.pixels = RowOf<float>(images.batch.images, i);
    panel.patch = patch;
    panel.title = fmt::format("{}, {:.0f} %", classes[static_cast<std::size_t>(told)],
                              100 * std::exp(log_probs[told].item<double>()));
    if (!images.set.labels.empty() && images.set.labels[static_cast<std::size_t>(i)] != told) {
      const auto label = static_cast<std::size_t>(images.set.labels[static_cast<std::size_t>(i)]);
      panel.title += fmt::format(" ✗ is {}", classes[label]);
      panel.marked = true;
    }
    if (classification.weights.defined()) panel.weights = RowOf<float>(classification.weights, i);
    if (classification.glimpses.defined()) panel.glimpses = RowOf<std::int64_t>(classification.glimpses, i);
    document.panels.push_back(std::move(panel));
  }
  return document;
}

void EvaluateImages(const EvaluateImagesOptions& options) {
  train::ImageRun run = train::ImageRun::Load(options.run);
  const train::ImageRun::Images images =
      ChooseImages(run.Read(options.data, /*labelled=*/true, options.label), options.limit, options.last);
  const train::ImageMeasures measures = train::MeasureImages(run.model(), images.batch);
  const auto count = static_cast<double>(measures.images);
  const double accuracy = static_cast<double>(measures.correct) / count, loss = measures.nats / count;
  Output out("-");
  if (options.json) {
    nlohmann::ordered_json json{
        {"images", measures.images}, {"correct", measures.correct}, {"accuracy", accuracy}, {"loss", loss}};
    if (options.confusion) {
      json["classes"] = run.classes();
      for (std::int64_t i = 0; i < measures.confusion.size(0); ++i)
        json["confusion"].push_back(RowOf<std::int64_t>(measures.confusion, i));
    }
    out.Print("{}\n", json.dump(2));
  } else {
    out.Print("{:<18}{}, {}\n", "data", Count(measures.images, "image"),
              fmt::format("{} classes", run.classes().size()));
    out.Print("{:<18}{:.1f} %, {} of {}\n", "accuracy", 100 * accuracy, Grouped(measures.correct),
              Grouped(measures.images));
    out.Print("{:<18}{:.4f} nats an image\n", "loss", loss);
    if (options.confusion) PrintConfusion(measures.confusion, run.classes(), out);
  }
  out.Flush();
}

}  // namespace regard::cli
