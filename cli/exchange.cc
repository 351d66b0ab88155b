// regard export and import: language models in GPT-2's layout.
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "train/text_run.h"

namespace regard::cli {
namespace {

struct ExchangeOptions {
  Common common;
  std::string from, to;
  bool force = false;
};

}  // namespace

void AddExport(CLI::App& app) {
  auto options = std::make_shared<ExchangeOptions>();
  CLI::App& command =
      AddCommand(app, "export",
                 "Write a language model in GPT-2's layout\n\n"
                 "FOLDER gets model.safetensors with GPT-2's names, config.json and the tokeniser.",
                 "regard export runs/bard -o bard-gpt2");
  AddText(command, "RUN", "", options->from, "Folder of the trained model")->required();
  AddText(command, "-o,--output", "FOLDER", options->to, "Where the files go")->required();
  AddCommon(command, options->common);
  command.callback([options] {
    train::TextRun::Load(options->from).Export(options->to);
    Messages(options->common.quiet).Say("{}/model.safetensors, config.json", options->to);
  });
}

void AddImport(CLI::App& app) {
  auto options = std::make_shared<ExchangeOptions>();
  CLI::App& command = AddCommand(app, "import",
                                 "Make a run from a language model in GPT-2's layout\n\n"
                                 "FOLDER is one that regard export wrote, or has such files.",
                                 "regard import bard-gpt2 -o runs/again");
  AddText(command, "FOLDER", "", options->from, "model.safetensors, config.json and the tokeniser")
      ->required();
  AddText(command, "-o,--output", "RUN", options->to, "Folder for the run")->required();
  AddFlag(command, "--force", options->force, "Replace the run that is there");
  AddCommon(command, options->common);
  command.callback([options] {
    train::TextRun::Import(options->from, options->to, options->force);
    Messages(options->common.quiet).Say("Now type:  {} generate {}", Program(), options->to);
  });
}

}  // namespace regard::cli
