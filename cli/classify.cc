// regard classify: what trained classifiers see in images, and where they looked.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/image_report.h"
#include "cli/options.h"
#include "cli/pictures.h"
#include "cli/text.h"
#include "cli/threads.h"
#include "engine/base/error.h"
#include "train/image_run.h"
#include "train/image_task.h"

namespace regard::cli {
namespace {

struct ClassifyOptions {
  Common common;
  std::string run, input, label, output = "-", picture, title;
  std::int64_t limit = 0, last = 0, pictures = 24;
  bool json = false, labelled = false, wrong = false;
};

// Everything about the images that were read.
struct Told {
  train::ImageRun::Images images;
  models::Classification classification;
  std::vector<std::int64_t> classes;  // [N]: the likeliest
  std::vector<std::int64_t> shown;    // of which images something is said
};

std::string NameOf(const Told& told, std::int64_t image) {
  return told.images.set.names.empty() ? std::to_string(image + 1)
                                       : told.images.set.names[static_cast<std::size_t>(image)];
}

Told Classify(train::ImageRun& run, const ClassifyOptions& o) {
  Told told;
  told.images =
      ChooseImages(run.Read(o.input, o.labelled || o.wrong || !o.label.empty(), o.label), o.limit, o.last);
  told.classification = train::ClassifyImages(run.model(), told.images.batch.images);
  const torch::Tensor classes = told.classification.log_probs.argmax(1);
  for (std::int64_t i = 0; i < classes.size(0); ++i) {
    told.classes.push_back(classes[i].item<std::int64_t>());
    if (!o.wrong || told.images.set.labels[static_cast<std::size_t>(i)] != told.classes.back())
      told.shown.push_back(i);
  }
  return told;
}

double ProbabilityOf(const Told& told, std::int64_t image, std::int64_t class_number) {
  return std::exp(told.classification.log_probs[image][class_number].item<double>());
}

void PrintLines(const Told& told, const std::vector<std::string>& classes, Output& out) {
  for (const std::int64_t i : told.shown) {
    const std::int64_t best = told.classes[static_cast<std::size_t>(i)];
    out.Print("{}\t{}\t{:.4f}", NameOf(told, i), classes[static_cast<std::size_t>(best)],
              ProbabilityOf(told, i, best));
    if (!told.images.set.labels.empty()) {
      const auto label = static_cast<std::size_t>(told.images.set.labels[static_cast<std::size_t>(i)]);
      out.Print("\t{}", classes[label]);
    }
    out.Write("\n");
  }
}

void PrintJson(const Told& told, const std::vector<std::string>& classes, Output& out) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const std::int64_t i : told.shown) {
    const std::int64_t best = told.classes[static_cast<std::size_t>(i)];
    nlohmann::ordered_json entry{{"image", NameOf(told, i)},
                                 {"class", classes[static_cast<std::size_t>(best)]},
                                 {"probability", ProbabilityOf(told, i, best)}};
    if (!told.images.set.labels.empty())
      entry["true"] = classes[static_cast<std::size_t>(told.images.set.labels[static_cast<std::size_t>(i)])];
    for (std::size_t c = 0; c < classes.size(); ++c)
      entry["probabilities"][classes[c]] = ProbabilityOf(told, i, static_cast<std::int64_t>(c));
    const torch::Tensor& glimpses = told.classification.glimpses;
    for (std::int64_t t = 0; glimpses.defined() && t < glimpses.size(1); ++t)
      entry["glimpses"].push_back(glimpses[i][t].item<std::int64_t>());
    const torch::Tensor& weights = told.classification.weights;
    for (std::int64_t p = 0; weights.defined() && p < weights.size(1); ++p)
      entry["weights"].push_back(weights[i][p].item<float>());
    json.push_back(std::move(entry));
  }
  out.Print("{}\n", json.dump(2));
}

// "digits" of "runs/digits/"
std::string NameOfRun(const std::string& run) {
  const std::filesystem::path path = std::filesystem::absolute(run).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

void WritePictures(const train::ImageRun& run, const Told& told, std::int64_t patch, const ClassifyOptions& o,
                   const Messages& messages) {
  if (told.shown.empty()) return messages.Warn("no image to draw");
  std::vector<std::int64_t> drawn = told.shown;
  if (std::ssize(drawn) > o.pictures) {
    drawn.resize(static_cast<std::size_t>(o.pictures));
    messages.Say("The picture shows the first {} of {} images; --pictures changes that.", Grouped(o.pictures),
                 Grouped(std::ssize(told.shown)));
  }
  view::ImageDocument document = PictureOf(told.images, told.classification, run.classes(), drawn, patch);
  document.title = o.title.empty() ? fmt::format("Where {} looked", NameOfRun(o.run)) : o.title;
  const bool is_page = std::filesystem::path(o.picture).extension() != ".svg";
  WritePicture(o.picture, is_page ? view::ImagePage(document) : view::ImageSvg(document));
  messages.Say("Picture: {}", FileUrl(o.picture));
}

void RunClassify(const ClassifyOptions& o) {
  const std::string extension = std::filesystem::path(o.picture).extension().string();
  if (!o.picture.empty() && extension != ".svg" && extension != ".html")
    throw UsageError(fmt::format("--picture {}: expected a name that ends in .svg or .html", o.picture));
  UseThreads(o.common);
  const Messages messages(o.common.quiet);
  train::ImageRun run = train::ImageRun::Load(o.run);
  const Told told = Classify(run, o);
  if (!o.picture.empty())
    WritePictures(run, told, run.model().config().value("patch", std::int64_t{1}), o, messages);
  Output out(o.output);
  o.json ? PrintJson(told, run.classes(), out) : PrintLines(told, run.classes(), out);
  out.Close();
}

}  // namespace

void AddClassify(CLI::App& app) {
  auto options = std::make_shared<ClassifyOptions>();
  ClassifyOptions& o = *options;
  CLI::App& command = AddCommand(
      app, "classify",
      "Tell the classes of images with a trained classifier\n\n"
      "One line an image: its name or number, the class and its probability, separated by tabs, and the true "
      "class where INPUT has it (--labelled).",
      "regard classify runs/digits three.png\n"
      "regard classify runs/digits digits.csv --labelled --last 450 --picture looked.svg\n"
      "regard classify runs/digits digits.csv --wrong --json");
  AddText(command, "RUN", "", o.run, "Folder of the trained model")->required();
  AddText(command, "INPUT", "", o.input,
          "A PNG file, a folder of them, a .csv file with an image a line, or an IDX file")
      ->required();
  AddFlag(command, "--labelled", o.labelled, "INPUT holds the classes too, as for regard train images");
  AddText(command, "--label", "COLUMN", o.label, "Where they are, as for regard train images");
  AddFlag(command, "--wrong", o.wrong, "Only images that are told wrongly; INPUT holds the classes");
  AddInteger(command, "--limit", "N", o.limit, 0, "Images to read, the first ones; 0: all");
  AddInteger(command, "--last", "N", o.last, 0, "Only the last images; 0: all");
  AddFlag(command, "--json", o.json, "As JSON, with all probabilities and what was looked at");
  AddText(command, "-o,--output", "FILE", o.output, "Where the classes go");
  AddText(command, "--picture", "FILE", o.picture,
          "Draw where the model looked: an .svg, or an .html for the browser");
  AddInteger(command, "--pictures", "N", o.pictures, 1, "Images drawn at most, the first ones", 1000);
  AddText(command, "--title", "TEXT", o.title, "Title of the picture");
  AddCommon(command, o.common);
  command.callback([options] { RunClassify(*options); });
}

}  // namespace regard::cli
