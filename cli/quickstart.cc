// regard quickstart: in about a minute from nothing to a trained model and a picture of its attention.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/date_attention.h"
#include "cli/options.h"
#include "cli/pictures.h"
#include "cli/presets.h"
#include "cli/text.h"
#include "cli/training.h"
#include "data/dates.h"
#include "engine/base/error.h"
#include "train/translation_run.h"
#include "view/attention_view.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kHeldOut = 1000;  // dates that test what was learnt
constexpr std::size_t kShown = 10;       // of them in the table and on the page
constexpr char kDefaultRun[] = "runs/quickstart";

struct QuickstartOptions {
  Common common;
  std::string run = kDefaultRun;
  std::int64_t seed = 0, max_steps = 0;
  bool force = false, json = false;
};

// What the held-out dates say about the model.
struct Trial {
  std::vector<data::DatePair> dates;
  std::vector<train::Translation> translations;
  std::int64_t exact = 0, mostly_right = 0;
  PartShares shares{};  // mean

  bool Right(std::size_t i) const { return translations[i].text == dates[i].target; }
};

Trial Try(train::TranslationRun& run, std::uint64_t seed) {
  Trial trial;
  trial.dates = data::GenerateDates(kHeldOut, seed, data::DateSplit::kHeldOut);
  std::vector<std::string> sources;
  for (const data::DatePair& date : trial.dates) sources.push_back(date.source);
  train::TranslateOptions translate;
  translate.decode.attention = true;
  trial.translations = run.Translate(sources, translate).lines;
  for (std::size_t i = 0; i < trial.dates.size(); ++i) {
    trial.exact += trial.Right(i) ? 1 : 0;
    const PartShares shares =
        SharesOnRightPart(trial.translations[i], trial.dates[i], run.source().Pieces(sources[i]));
    trial.mostly_right += MostlyRight(shares) ? 1 : 0;
    for (std::size_t p = 0; p < kDateParts; ++p) trial.shares[p] += shares[p] / double{kHeldOut};
  }
  return trial;
}

// Dates to show: the first of each style, English and French in turn, the longest written ones first.
std::vector<std::size_t> Choose(const Trial& trial) {
  const std::vector<data::DateStyle>& styles = data::DateStyles();
  std::vector<std::size_t> first_of_style;
  std::vector<bool> seen(styles.size());
  for (std::size_t i = 0; i < trial.dates.size(); ++i) {
    if (seen[trial.dates[i].style]) continue;
    seen[trial.dates[i].style] = true;
    first_of_style.push_back(i);
  }
  std::stable_sort(first_of_style.begin(), first_of_style.end(), [&](std::size_t a, std::size_t b) {
    return trial.dates[a].source.size() > trial.dates[b].source.size();
  });
  std::vector<std::size_t> chosen;
  const std::string turns[] = {"en", "fr", "en", "fr", "any"};
  for (std::size_t turn = 0; chosen.size() < kShown && !first_of_style.empty(); ++turn) {
    const std::string& language = turns[turn % std::size(turns)];
    const auto found = std::find_if(first_of_style.begin(), first_of_style.end(), [&](std::size_t i) {
      return styles[trial.dates[i].style].language == language;
    });
    if (found != first_of_style.end()) {
      chosen.push_back(*found);
      first_of_style.erase(found);
    } else if (turn > first_of_style.size() * std::size(turns) + kShown) {
      break;  // the languages in turn have no style left
    }
  }
  return chosen;
}

view::AttentionDocument Document(const Trial& trial, const std::vector<std::size_t>& chosen) {
  view::AttentionDocument document{.title = "What a reader of dates attends to",
                                   .query_axis = "read as",
                                   .key_axis = "written",
                                   .panels = {}};
  for (const std::size_t i : chosen)
    document.panels.push_back(PanelOf(trial.translations[i], trial.dates[i].source));
  return document;
}

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void PrintTable(const Trial& trial, const std::vector<std::size_t>& chosen, Output& out) {
  std::size_t width = 0;
  for (const std::size_t i : chosen) width = std::max(width, Columns(trial.dates[i].source));
  const auto bold = [](std::string_view text) { return Paint(Style::kBold, text, stdout); };
  out.Print("  {}  {}\n", bold(Pad("written", width)), bold("read as"));
  for (const std::size_t i : chosen) {
    const std::string& read = trial.translations[i].text;
    const std::string verdict = trial.Right(i) ? Paint(Style::kGreen, "✓", stdout)
                                               : Paint(Style::kRed, "✗ " + trial.dates[i].target, stdout);
    out.Print("  {}  {}  {}\n", Pad(trial.dates[i].source, width), read, verdict);
  }
}

nlohmann::ordered_json Json(const Trial& trial, const train::TrainResult& trained, const std::string& run,
                            const std::string& page) {
  return {{"dates", kHeldOut},
          {"styles", data::DateStyles().size()},
          {"exact", trial.exact},
          {"attention_mostly_right", trial.mostly_right},
          {"attention_share",
           {{"year", trial.shares[kYear]}, {"month", trial.shares[kMonth]}, {"day", trial.shares[kDay]}}},
          {"train_seconds", trained.seconds},
          {"train_steps", trained.steps},
          {"run", run},
          {"page", page}};
}

void PrintResult(const Trial& trial, const std::vector<std::size_t>& chosen, Output& out) {
  const std::string exact = fmt::format("{} of {}", Grouped(trial.exact), Grouped(kHeldOut));
  out.Print("\n{} dates never seen in training are read exactly right ({}).\n\n",
            Paint(Style::kBold, exact, stdout), Percent(static_cast<double>(trial.exact) / kHeldOut));
  PrintTable(trial, chosen, out);
  view::AttentionDocument one = Document(trial, {chosen.front()});
  one.title = "What it looks at";
  const int width = std::min(TerminalWidth(stdout), 110);
  out.Print("\n{}", view::TerminalText(one, width, view::DetectTerminalColor()));
  out.Print(
      "\nAttention lies on the right part of the source: year {}, month {}, day {};\n"
      "for each of the three more than half of it, on {} of {} dates.\n",
      Percent(trial.shares[kYear]), Percent(trial.shares[kMonth]), Percent(trial.shares[kDay]),
      Grouped(trial.mostly_right), Grouped(kHeldOut));
}

void PrintNext(const std::string& run, const std::string& page, Output& out) {
  const auto command = [](const std::string& text) { return Paint(Style::kCyan, text, stdout); };
  out.Print("\nThe attention page, to be opened in a browser:\n  {}\n", command(FileUrl(page)));
  out.Print("\nTo go on:\n");
  out.Print("  {}\n", command(fmt::format("echo '1er avril 2031' | {} translate {}", Program(), run)));
  out.Print("  {}\n", command(fmt::format("{} view {} --text 'the third of March 2027'", Program(), run)));
  out.Print("  {}   your own pairs, source TAB target\n",
            command(Program() + " train pairs sentences.tsv -o runs/mine"));
}

TrainingSpec Spec(const QuickstartOptions& options) {
  PresetValues values{{"--seed", fmt::format("{}", options.seed)}};
  if (options.max_steps > 0) values.emplace_back("--max-steps", fmt::format("{}", options.max_steps));
  const PresetValues& preset = FindPreset(kDates);
  values.insert(values.end(), preset.begin(), preset.end());  // where a name stands twice, the first holds
  TrainingSpec spec = SpecOf(kDates, options.run, values);
  spec.force = options.force || options.run == kDefaultRun;  // its own folder is its to replace
  return spec;
}

void RunQuickstart(const QuickstartOptions& options) {
  const Messages messages(options.common.quiet);
  // A network this small gains nothing from a second thread, and would wait for it on a busy machine.
  at::set_num_threads(options.common.threads > 0 ? static_cast<int>(options.common.threads) : 1);
  Output out("-");
  messages.Say("A small network learns to read dates, written in {} styles in English and French.\n",
               data::DateStyles().size());
  const train::TrainResult trained = TrainPairs(Spec(options), messages);
  if (trained.reason == train::StopReason::kInterrupted) {
    messages.Say("Saved. To go on: {} train pairs -o {} --resume", Program(), options.run);
    throw Error("interrupted");
  }
  train::TranslationRun run = train::TranslationRun::Load(options.run);
  const Trial trial = Try(run, static_cast<std::uint64_t>(options.seed) + 1);
  const std::vector<std::size_t> chosen = Choose(trial);
  const std::string folder = run.directory().File("attention");
  std::filesystem::create_directories(folder);
  const std::string page = folder + "/dates.html";
  const view::AttentionDocument document = Document(trial, chosen);
  view::WritePage(document, page);
  WritePicture(folder + "/date.svg", view::SvgDocument(Document(trial, {chosen.front()})));
  if (options.json) {
    out.Print("{}\n", Json(trial, trained, options.run, page).dump(2));
  } else {
    PrintResult(trial, chosen, out);
    PrintNext(options.run, page, out);
  }
  out.Flush();
}

}  // namespace

void AddQuickstart(CLI::App& app) {
  auto options = std::make_shared<QuickstartOptions>();
  CLI::App& command = AddCommand(app, "quickstart",
                                 "Train a small model in a minute and look at its attention\n\n"
                                 "Generates dates in many styles, trains a translator to 2027-03-03, tests "
                                 "it on dates it has never seen, and "
                                 "writes a page that shows what it attends to. Needs no data and no network.",
                                 "regard quickstart\nregard quickstart -o /tmp/dates --seed 7");
  AddText(command, "-o,--output", "RUN", options->run, "Folder for the trained model and the pictures");
  AddInteger(command, "--seed", "N", options->seed, 0, "Of dates, weights and order");
  AddInteger(command, "--max-steps", "N", options->max_steps, 0, "Stop training early; 0: do not");
  AddFlag(command, "--force", options->force, "Replace the run that is there");
  AddFlag(command, "--json", options->json, "Figures as JSON");
  AddCommon(command, options->common);
  command.callback([options] { RunQuickstart(*options); });
}

}  // namespace regard::cli
