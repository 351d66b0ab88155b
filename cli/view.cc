// regard view: what each token of a translation, or of a language model's text, attended to.
#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/pictures.h"
#include "cli/text.h"
#include "cli/threads.h"
#include "data/tokenizer.h"
#include "engine/base/error.h"
#include "train/image_run.h"
#include "train/text_run.h"
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

// Each text is translated.
view::AttentionDocument ViewTranslations(const ViewOptions& options, const Messages& messages) {
  train::TranslationRun run = train::TranslationRun::Load(options.run);
  train::TranslateOptions translate;
  translate.decode = {.beam = options.beam, .attention = true, .heads = options.heads};
  const train::Translations result = run.Translate(options.texts, translate);
  if (!result.truncated.warning.empty()) messages.Warn(result.truncated.warning);

  view::AttentionDocument document;
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
  return document;
}

// weights [T, T] of the tokens of a text, of which none sees those after it.
view::AttentionPanel CausalPanel(const torch::Tensor& weights, const std::vector<std::string>& tokens,
                                 const std::string& title) {
  view::AttentionPanel panel = PanelOf(weights, tokens, tokens, title);
  const torch::Tensor masked = torch::ones(weights.sizes(), torch::kUInt8).triu(1);
  panel.masked.assign(masked.data_ptr<std::uint8_t>(), masked.data_ptr<std::uint8_t>() + masked.numel());
  return panel;
}

// Each text is read by a language model.
view::AttentionDocument ViewTexts(const ViewOptions& options, const Messages& messages) {
  if (options.beam > 1)
    throw UsageError(fmt::format("--beam: {} holds a language model, not a translator", options.run));
  train::TextRun run = train::TextRun::Load(options.run);
  view::AttentionDocument document{.title = {}, .query_axis = "token", .key_axis = "sees", .panels = {}};
  for (const std::string& text : options.texts) {
    std::vector<data::Piece> pieces = run.tokenizer().Pieces(text);
    const auto count = std::ssize(pieces), most = run.model().context();
    if (count == 0) {
      messages.Warn("an empty text has nothing to show");
      continue;
    }
    if (count > most) {
      messages.Warn(
          fmt::format("a text has {} tokens, and the model sees {} at most: only the last are shown",
                      Grouped(count), Grouped(most)));
      pieces.erase(pieces.begin(), pieces.end() - most);
    }
    std::vector<std::int64_t> ids;
    std::vector<std::string> tokens;
    for (const data::Piece& piece : pieces) {
      ids.push_back(piece.id);
      tokens.push_back(piece.text);
    }
    const torch::Tensor weights = run.model().Attention(torch::tensor(ids));
    if (!options.heads) {
      document.panels.push_back(CausalPanel(weights[-1].mean(0), tokens, text));
      continue;
    }
    document.columns = weights.size(1);
    for (std::int64_t layer = 0; layer < weights.size(0); ++layer) {
      for (std::int64_t head = 0; head < weights.size(1); ++head) {
        document.panels.push_back(
            CausalPanel(weights[layer][head], tokens, fmt::format("layer {}, head {}", layer + 1, head + 1)));
      }
    }
  }
  return document;
}

void RunView(const ViewOptions& options) {
  const std::string kind = train::RunDirectory::KindOf(options.run);
  if (kind == train::ImageRun::kKind) {
    throw UsageError(fmt::format(
        "{} holds an image classifier: {} classify {} IMAGES --picture FILE draws where it looked",
        options.run, Program(), options.run));
  }
  if (options.texts.empty()) throw UsageError("--text is missing: a text to look at");
  UseThreads(options.common);
  const Messages messages(options.common.quiet);
  view::AttentionDocument document =
      kind == train::TextRun::kKind ? ViewTexts(options, messages) : ViewTranslations(options, messages);
  if (document.panels.empty()) return;
  document.title = options.title.empty() ? "Attention of " + options.run : options.title;
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
  CLI::App& command = AddCommand(
      app, "view",
      "Show what a trained model attends to\n\n"
      "Of a translator, each row is a token of the translation, each column one of the source; of a "
      "language model, each row is a token of the text, each column one that it sees. Drawn in the "
      "terminal, unless a page or an SVG is asked for.",
      "regard view runs/mine --text 'Good morning.'\n"
      "regard view runs/mine --text 'Good morning.' --page attention.html\n"
      "regard view runs/bard --text 'ROMEO: But soft' --heads --svg heads.svg");
  AddText(command, "RUN", "", options->run, "Folder of the trained model")->required();
  command.add_option("--text", options->texts, "A text to translate or to read, may be given again")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  AddText(command, "--page", "FILE", options->page, "Write one HTML page, to be opened in a browser");
  AddText(command, "--svg", "FILE", options->svg, "Write an SVG");
  AddText(command, "--title", "TEXT", options->title, "Title of the picture");
  AddInteger(command, "-b,--beam", "N", options->beam, 1,
             "Of a translator: hypotheses kept in the search; 1: greedy", 1024);
  AddFlag(command, "--heads", options->heads,
          "A picture for each attention head, of a translator's last layer and of every layer of a language "
          "model, not of the mean of the last layer's");
  AddInteger(command, "--width", "N", options->width, 0, "Columns to draw in; 0: those of the terminal",
             10000);
  AddCommon(command, options->common);
  command.callback([options] { RunView(*options); });
}

}  // namespace regard::cli
