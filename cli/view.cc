// regard view: translates texts and shows what each target token attended to.
#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/pictures.h"
#include "cli/threads.h"
#include "engine/base/error.h"
#include "train/translation_run.h"
#include "view/attention_view.h"

namespace regard::cli {
namespace {

struct ViewOptions {
  Common common;
  std::string run, page, svg, title;
  std::vector<std::string> texts;
  std::int64_t beam = 1, width = 0;
  bool heads = false;
};

// A panel for each head: the attention is [T, H, S].
void AddHeads(const train::Translation& line, const std::string& title, view::AttentionDocument& document) {
  train::Translation one = line;
  for (std::int64_t head = 0; head < line.attention.size(1); ++head) {
    one.attention = line.attention.select(1, head);
    document.panels.push_back(PanelOf(one, fmt::format("{} (head {})", title, head + 1)));
  }
}

void RunView(const ViewOptions& options) {
  if (options.texts.empty()) throw UsageError("--text is missing: a text to translate and to look at");
  UseThreads(options.common);
  const Messages messages(options.common.quiet);
  train::TranslationRun run = train::TranslationRun::Load(options.run);
  train::TranslateOptions translate;
  translate.decode = {.beam = options.beam, .attention = true, .heads = options.heads};
  const train::Translations result = run.Translate(options.texts, translate);
  if (!result.truncated.warning.empty()) messages.Warn(result.truncated.warning);

  view::AttentionDocument document{
      .title = options.title.empty() ? "Attention of " + options.run : options.title, .panels = {}};
  for (std::size_t i = 0; i < options.texts.size(); ++i) {
    const train::Translation& line = result.lines[i];
    if (!line.attention.defined()) {
      messages.Warn("a blank text has nothing to show");
    } else if (line.attention.dim() == 2) {
      document.panels.push_back(PanelOf(line, options.texts[i]));
    } else {
      AddHeads(line, options.texts[i], document);
    }
  }
  if (document.panels.empty()) return;
  if (!options.page.empty()) {
    view::WritePage(document, options.page);
    messages.Say("Page: {}", FileUrl(options.page));
  }
  if (!options.svg.empty()) {
    WritePicture(options.svg, view::SvgDocument(document));
    messages.Say("SVG: {}", FileUrl(options.svg));
  }
  if (!options.page.empty() || !options.svg.empty()) return;
  const int width = options.width > 0 ? static_cast<int>(options.width) : TerminalWidth(stdout);
  Output out("-");
  out.Write(view::TerminalText(document, width, view::DetectTerminalColor()));
  out.Flush();
}

}  // namespace

void AddView(CLI::App& app) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App& command =
      AddCommand(app, "view",
                 "Show what a trained model attends to\n\n"
                 "Each row is a token of the translation, each column one of the source. Drawn in the "
                 "terminal, unless a page or an SVG is asked for.",
                 "regard view runs/mine --text 'Good morning.'\n"
                 "regard view runs/mine --text 'Good morning.' --page attention.html");
  AddText(command, "RUN", "", options->run, "Folder of the trained model")->required();
  command.add_option("--text", options->texts, "A text to translate, may be given again")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  AddText(command, "--page", "FILE", options->page, "Write one HTML page, to be opened in a browser");
  AddText(command, "--svg", "FILE", options->svg, "Write an SVG");
  AddText(command, "--title", "TEXT", options->title, "Title of the picture");
  AddInteger(command, "-b,--beam", "N", options->beam, 1, "Hypotheses kept in the search; 1: greedy", 1024);
  AddFlag(command, "--heads", options->heads,
          "A picture for each attention head of a transformer's last layer, not of their mean");
  AddInteger(command, "--width", "N", options->width, 0, "Columns to draw in; 0: those of the terminal",
             10000);
  AddCommon(command, options->common);
  command.callback([options] { RunView(*options); });
}

}  // namespace regard::cli
