// regard compare layers: what attention, convolution and recurrence cost against length and width.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/layers.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/pictures.h"
#include "cli/text.h"
#include "cli/threads.h"
#include "engine/base/error.h"
#include "train/progress.h"
#include "view/plot.h"

namespace regard::cli {
namespace {

using bench::LayerCosts;
using bench::LayerPoint;
using bench::LayerTheory;
using nlohmann::ordered_json;

struct CompareOptions {
  Common common;
  std::vector<std::int64_t> lengths = {256, 512, 1024, 2048, 4096}, widths = {32, 64, 128, 256, 512};
  std::int64_t length = 512, width = 64, runs = 5;
  std::string svg;
  bool json = false;
};

std::vector<double> Sizes(const std::vector<LayerPoint>& points, std::int64_t LayerPoint::*size) {
  std::vector<double> sizes;
  for (const LayerPoint& point : points) sizes.push_back(static_cast<double>(point.*size));
  return sizes;
}
std::vector<double> Of(const std::vector<LayerPoint>& points, double LayerPoint::*value, double factor = 1) {
  std::vector<double> values;
  for (const LayerPoint& point : points) values.push_back(factor * (point.*value));
  return values;
}

struct Exponents {
  double time_by_length, time_by_width, memory_by_length, memory_by_width;
};
Exponents ExponentsOf(const LayerCosts& costs) {
  const auto n = Sizes(costs.by_length, &LayerPoint::length), d = Sizes(costs.by_width, &LayerPoint::width);
  return {bench::FittedExponent(n, Of(costs.by_length, &LayerPoint::seconds)),
          bench::FittedExponent(d, Of(costs.by_width, &LayerPoint::seconds)),
          bench::FittedExponent(n, Of(costs.by_length, &LayerPoint::bytes)),
          bench::FittedExponent(d, Of(costs.by_width, &LayerPoint::bytes))};
}

ordered_json PointsJson(const std::vector<LayerPoint>& points) {
  ordered_json list = ordered_json::array();
  for (const LayerPoint& p : points) {
    list.push_back({{"length", p.length}, {"width", p.width}, {"seconds", p.seconds}, {"bytes", p.bytes}});
  }
  return list;
}

ordered_json LayerJson(const LayerCosts& costs) {
  const LayerTheory theory = bench::TheoryOf(costs.kind);
  const Exponents fitted = ExponentsOf(costs);
  const auto pair = [](double measured, double expected) {
    return ordered_json{{"fitted", measured}, {"theory", expected}};
  };
  return {{"layer", theory.name},
          {"work", theory.work},
          {"sequential_steps", theory.sequential},
          {"longest_path", theory.path},
          {"time_by_length", pair(fitted.time_by_length, theory.work_by_length)},
          {"time_by_width", pair(fitted.time_by_width, theory.work_by_width)},
          {"memory_by_length", pair(fitted.memory_by_length, theory.memory_by_length)},
          {"memory_by_width", pair(fitted.memory_by_width, theory.memory_by_width)},
          {"by_length", PointsJson(costs.by_length)},
          {"by_width", PointsJson(costs.by_width)}};
}

void PrintPoints(const std::string& title, const std::vector<LayerCosts>& all,
                 std::vector<LayerPoint> LayerCosts::*points, std::int64_t LayerPoint::*size, Output& out) {
  out.Print("{}\n{:>8}", Paint(Style::kBold, title, stdout), "");
  for (const LayerCosts& costs : all) out.Print(" {:>25}", bench::TheoryOf(costs.kind).name);
  out.Print("\n");
  for (std::size_t n = 0; n < (all[0].*points).size(); ++n) {
    out.Print("{:>8}", (all[0].*points)[n].*size);
    for (const LayerCosts& costs : all) {
      const LayerPoint& p = (costs.*points)[n];
      out.Print(" {:>12.3f} ms {:>6.2f} MB", 1e3 * p.seconds, 1e-6 * p.bytes);
    }
    out.Print("\n");
  }
  out.Print("\n");
}

void PrintTable(const CompareOptions& options, const std::vector<LayerCosts>& all, Output& out) {
  PrintPoints(fmt::format("Length n, width {}: a training step, and the tensors it needs", options.width),
              all, &LayerCosts::by_length, &LayerPoint::length, out);
  PrintPoints(fmt::format("Width d, length {}", options.length), all, &LayerCosts::by_width,
              &LayerPoint::width, out);
  const std::string head =
      fmt::format("{:<15} {:>6} {:>14} {:>14} {:>14} {:>14} {:>11} {:>13}", "layer", "work", "time by n",
                  "time by d", "memory by n", "memory by d", "sequential", "longest path");
  out.Print("{}\n", Paint(Style::kBold, head, stdout));
  for (const LayerCosts& costs : all) {
    const LayerTheory theory = bench::TheoryOf(costs.kind);
    const Exponents fitted = ExponentsOf(costs);
    const auto cell = [](double measured, double expected) {
      return fmt::format("{:.2f} ({:g})", measured, expected);
    };
    // Padded by what is seen: "²" is two bytes.
    const std::string work(6 - std::min<std::size_t>(6, theory.work.size() - 1), ' ');
    out.Print("{:<15} {}{} {:>14} {:>14} {:>14} {:>14} {:>11} {:>13}\n", theory.name, work, theory.work,
              cell(fitted.time_by_length, theory.work_by_length),
              cell(fitted.time_by_width, theory.work_by_width),
              cell(fitted.memory_by_length, theory.memory_by_length),
              cell(fitted.memory_by_width, theory.memory_by_width), theory.sequential, theory.path);
  }
  out.Print(
      "\nExponents fitted to the largest three sizes (those of theory in brackets). Convolution over k = {} "
      "elements.\n",
      bench::kConvolutionWidth);
}

std::string Picture(const std::vector<LayerCosts>& all) {
  const auto plot = [&](const std::string& title, const std::string& x_axis, const std::string& y_axis,
                        std::vector<LayerPoint> LayerCosts::*points, std::int64_t LayerPoint::*size,
                        double LayerPoint::*value, double factor) {
    view::Plot picture{.title = title, .x_axis = x_axis, .y_axis = y_axis, .log_x = true, .log_y = true};
    for (const LayerCosts& costs : all) {
      picture.series.push_back({.name = bench::TheoryOf(costs.kind).name,
                                .x = Sizes(costs.*points, size),
                                .y = Of(costs.*points, value, factor)});
    }
    return view::PlotSvg(picture);
  };
  const std::string n = "length n", d = "width d", ms = "ms a step", mb = "MB";
  return view::Arrange(
      {plot("Time by length", n, ms, &LayerCosts::by_length, &LayerPoint::length, &LayerPoint::seconds, 1e3),
       plot("Time by width", d, ms, &LayerCosts::by_width, &LayerPoint::width, &LayerPoint::seconds, 1e3),
       plot("Memory by length", n, mb, &LayerCosts::by_length, &LayerPoint::length, &LayerPoint::bytes, 1e-6),
       plot("Memory by width", d, mb, &LayerCosts::by_width, &LayerPoint::width, &LayerPoint::bytes, 1e-6)},
      2);
}

std::vector<std::int64_t> Checked(std::vector<std::int64_t> sizes, const std::string& option) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.size() < 3) throw UsageError(option + ": expected at least three different sizes");
  return sizes;
}

void RunCompare(const CompareOptions& options) {
  const bench::LayerSizes sizes{Checked(options.lengths, "--lengths"), Checked(options.widths, "--widths"),
                                options.length, options.width, static_cast<int>(options.runs)};
  UseThreads(options.common);
  train::Progress progress(options.common.quiet ? nullptr : stderr);
  const std::vector<LayerCosts> costs = bench::MeasureLayers(sizes, [&](int done, int all) {
    progress.Update(static_cast<double>(done) / all,
                    [&] { return fmt::format("{} of {} points", done, all); });
  });
  progress.Finish();
  Output out("-");
  if (options.json) {
    ordered_json json = ordered_json::array();
    for (const LayerCosts& own : costs) json.push_back(LayerJson(own));
    out.Print("{}\n", json.dump(2));
  } else {
    PrintTable(options, costs, out);
  }
  out.Flush();
  if (options.svg.empty()) return;
  WritePicture(options.svg, Picture(costs));
  Messages(options.common.quiet).Say("SVG: {}", FileUrl(options.svg));
}

}  // namespace

void AddCompare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App& compare =
      AddCommand(app, "compare", "Compare kinds of layers", "regard compare layers --svg costs.svg");
  compare.require_subcommand(1);
  CLI::App& command = AddCommand(
      compare, "layers",
      "Measure a layer of self-attention, convolution and recurrence on the same sequence\n\n"
      "Time and memory of a training step against the length and the width, with fitted exponents "
      "beside those of theory, the steps that wait for each other, and the longest path between two "
      "elements.",
      "regard compare layers\nregard compare layers --lengths 128 256 512 --svg costs.svg");
  AddIntegers(command, "--lengths", "N", options->lengths, 1, "Lengths n to measure at --width", 1 << 20);
  AddIntegers(command, "--widths", "D", options->widths, 1, "Widths d to measure at --length", 1 << 16);
  AddInteger(command, "--length", "N", options->length, 1, "Length while the width grows", 1 << 20);
  AddInteger(command, "--width", "D", options->width, 1, "Width while the length grows", 1 << 16);
  AddInteger(command, "--runs", "N", options->runs, 1, "Runs a point; the median counts", 1000);
  AddText(command, "--svg", "FILE", options->svg, "Draw the measurements");
  AddFlag(command, "--json", options->json, "Print JSON");
  AddCommon(command, options->common);
  command.callback([options] { RunCompare(*options); });
}

}  // namespace regard::cli
