// regard translate: lines in, as many lines out, in order.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/pictures.h"
#include "cli/text.h"
#include "cli/threads.h"
#include "data/pairs.h"
#include "engine/base/error.h"
#include "train/translation_run.h"

namespace regard::cli {
namespace {

constexpr std::size_t kChunk = 512;       // lines translated together when more are waiting
constexpr std::size_t kMostPanels = 200;  // on an attention page

struct LinesOptions {
  Common common;
  std::string run, file, output = "-", attention;
  std::vector<std::string> texts;
  std::int64_t beam = 1, batch_size = 64, max_length = 0;
  double length_penalty = 1;
  bool replace_invalid = false;
};

class LineTranslator {
 public:
  explicit LineTranslator(const LinesOptions& options)
      : options_(options),
        messages_(options.common.quiet),
        run_(train::TranslationRun::Load(options.run)),
        out_(options.output) {
    translate_.decode = {.beam = options.beam,
                         .length_penalty = options.length_penalty,
                         .max_length = options.max_length,
                         .attention = !options.attention.empty()};
    translate_.batch_size = options.batch_size;
  }

  void Translate(const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    const train::Translations result = run_.Translate(lines, translate_);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      out_.Write(OneLine(result.lines[i].text));
      Picture(lines[i], result.lines[i]);
    }
    out_.Flush();
    lines_ += std::ssize(lines);
    shortened_ += result.truncated.count;
    longest_ = std::max(longest_, result.truncated.longest);
  }

  void Finish() {
    out_.Close();
    if (shortened_ > 0) {
      messages_.Warn(
          fmt::format("{} of {} longer than the model's {} tokens (the longest has {}) and shortened",
                      Grouped(shortened_), Count(lines_, "line"), run_.max_source(), longest_));
    }
    if (options_.attention.empty()) return;
    if (document_.panels.empty()) throw Error("nothing was translated that attention could be shown of");
    view::WritePage(document_, options_.attention);
    messages_.Say("Attention: {}", FileUrl(options_.attention));
    if (left_out_ > 0) messages_.Say("It shows the first {} lines of text.", kMostPanels);
  }

 private:
  // A line end that a model produced inside its text must not become one of the output.
  static std::string OneLine(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return text + "\n";
  }

  void Picture(const std::string& line, const train::Translation& translation) {
    if (!translation.attention.defined()) return;
    if (document_.panels.size() < kMostPanels) {
      document_.panels.push_back(PanelOf(translation, line));
    } else {
      ++left_out_;
    }
  }

  const LinesOptions& options_;
  Messages messages_;
  train::TranslationRun run_;
  Output out_;
  train::TranslateOptions translate_;
  view::AttentionDocument document_{.title = "Attention of " + options_.run, .panels = {}};
  std::int64_t lines_ = 0, shortened_ = 0, longest_ = 0, left_out_ = 0;
};

// Translates what has arrived as soon as nothing more is waiting, so that a program that writes a line and
// waits for its answer gets it.
void TranslateStream(std::istream& in, const std::string& name, const LinesOptions& options,
                     LineTranslator& translator) {
  data::LineReader reader{
      .in = in,
      .name = name,
      .utf8 = options.replace_invalid ? data::Utf8Policy::kReplace : data::Utf8Policy::kError};
  const bool typed = &in == &std::cin && IsTerminal(stdin);
  const Messages messages(options.common.quiet);
  if (typed) messages.Say("Type a line to translate it; Ctrl-D ends.");
  auto prompt = [&] {
    if (typed && !options.common.quiet) std::fputs("> ", stderr);
  };
  std::vector<std::string> lines;
  std::string line;
  try {
    prompt();
    while (reader.Next(&line)) {
      lines.push_back(line);
      if (lines.size() < kChunk && in.rdbuf()->in_avail() > 0) continue;
      translator.Translate(lines);
      lines.clear();
      prompt();
    }
  } catch (const Error&) {
    translator.Translate(lines);  // what was read before the line at fault
    throw;
  }
  translator.Translate(lines);
  if (typed && !options.common.quiet) std::fputs("\n", stderr);
  if (reader.replaced > 0)
    messages.Warn(fmt::format("{}: not UTF-8 in {}, replaced", name, Count(reader.replaced, "line")));
}

std::ifstream Open(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw Error(path + ": is a folder, expected a file of lines");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return file;
}

void RunTranslate(const LinesOptions& options) {
  if (!options.texts.empty() && !options.file.empty()) throw UsageError("--text and FILE exclude each other");
  UseThreads(options.common);
  std::ifstream file;
  const bool from_file = !options.file.empty() && options.file != "-";
  if (from_file) file = Open(options.file);
  LineTranslator translator(options);
  if (!options.texts.empty()) {
    translator.Translate(options.texts);
  } else if (from_file) {
    TranslateStream(file, options.file, options, translator);
  } else {
    TranslateStream(std::cin, "standard input", options, translator);
  }
  translator.Finish();
}

}  // namespace

void AddTranslate(CLI::App& app) {
  auto options = std::make_shared<LinesOptions>();
  CLI::App& command = AddCommand(
      app, "translate",
      "Translate lines of text with a trained model\n\n"
      "As many lines come out as go in, in their order. Without FILE they are read from standard input.",
      "regard translate runs/mine english.txt -o french.txt\n"
      "echo 'Good morning.' | regard translate runs/mine --beam 4\n"
      "regard translate runs/mine --text 'Good morning.' --attention page.html");
  AddText(command, "RUN", "", options->run, "Folder of the trained model")->required();
  AddText(command, "FILE", "", options->file, "Lines to translate; -: standard input");
  command.add_option("--text", options->texts, "A text to translate, may be given again")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  AddText(command, "-o,--output", "FILE", options->output, "Where the translations go");
  AddInteger(command, "-b,--beam", "N", options->beam, 1, "Hypotheses kept in the search; 1: greedy", 1024);
  AddReal(command, "--length-penalty", "X", options->length_penalty, {.min = 0, .max = 10},
          "A hypothesis is ranked by log-probability / length^X");
  AddInteger(command, "--max-length", "N", options->max_length, 0,
             "Tokens of a translation at most; 0: the model's limit");
  AddInteger(command, "--batch-size", "N", options->batch_size, 1, "Lines translated together", 65536);
  AddText(command, "--attention", "FILE", options->attention, "Write a page that shows the attention");
  AddFlag(command, "--replace-invalid", options->replace_invalid, "Read what is not UTF-8 as U+FFFD");
  AddCommon(command, options->common);
  command.callback([options] { RunTranslate(*options); });
}

}  // namespace regard::cli
