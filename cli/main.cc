// The command `regard`: finds the subcommand, runs it, and turns what goes wrong into one line and an exit
// code: 0, 1 (failed) or 2 (used wrongly).
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <ios>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/text.h"
#include "engine/base/error.h"

namespace regard::cli {
namespace {

constexpr int kFailed = 1, kUsedWrongly = 2;

// libtorch adds where an error was raised on further lines; the first one says what happened.
void Complain(std::string_view name, std::string_view message, bool point_to_help) {
  const std::string line(message.substr(0, message.find('\n')));
  std::string text = fmt::format("{}: {}\n", Paint(Style::kRed, name, stderr), line);
  if (point_to_help) text += fmt::format("Type '{} --help' for what it takes.\n", name);
  std::fputs(text.c_str(), stderr);
}

bool Any(const CLI::App*) { return true; }

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(Any)) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The command that the words name ("regard train pairs"), and its full name. A word that should name a
// command and does not is a usage error that suggests the nearest one.
const CLI::App* Addressed(const CLI::App& root, int argc, char** argv, std::string& name) {
  const CLI::App* app = &root;
  name = root.get_name();
  for (int i = 1; i < argc && !app->get_subcommands(Any).empty(); ++i) {
    const std::string word = argv[i];
    if (word.empty() || word[0] == '-') break;
    const std::vector<std::string> names = CommandNames(*app);
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : app->get_subcommands(Any))
      if (sub->get_name() == word) next = sub;
    if (next == nullptr) {
      throw UsageError(fmt::format("no command '{}'{}; there {} {}", word, Suggestion(word, names),
                                   names.size() == 1 ? "is" : "are", Listed(names, "and")));
    }
    app = next;
    name += " " + word;
  }
  return app;
}

// What a parse error means to the person who typed.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  for (const std::string& word : app.remaining()) {
    const std::string option = word.substr(0, word.find('='));
    if (option.size() > 1 && option[0] == '-')
      return fmt::format("unknown option {}{}", option, Suggestion(option, OptionNames(app)));
  }
  if (error.get_name() == "RequiredError" && !app.get_subcommands(Any).empty())
    return fmt::format("expected a command: {}", Listed(CommandNames(app)));
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() && option->get_required() && option->count() == 0)
      return fmt::format("{} is missing: {}", option->get_name(true), option->get_description());
  const std::string what = error.what();  // "...: THING" or "OPTION: ..."
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
    return fmt::format("unexpected argument '{}'", what.substr(what.rfind(": ") + 2));
  if (error.get_name() == "ArgumentMismatch") return what.substr(0, what.find(':')) + " needs a value";
  return what;
}

int Run(int argc, char** argv) {
  if (argc > 0) SetProgram(argv[0]);
  CLI::App app("Attention as a product: train models that attend, and look at what they attend to.",
               "regard");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Show this help")->group("Options");
  app.set_version_flag("--version", "regard " REGARD_VERSION, "Show the version")->group("Options");
  app.require_subcommand(1);
  app.footer(
      "regard quickstart\nregard train pairs sentences.tsv -o runs/mine\n"
      "echo 'Good morning.' | regard translate runs/mine");
  AddQuickstart(app);
  AddTrain(app);
  AddTranslate(app);
  AddGenerate(app);
  AddClassify(app);
  AddEvaluate(app);
  AddView(app);
  AddAttend(app);
  AddBench(app);
  AddCompare(app);
  AddExport(app);
  AddImport(app);
  AddInfo(app);

  std::string name = app.get_name();
  const CLI::App* addressed = &app;
  try {
    if (argc < 2) {
      std::fputs(app.help().c_str(), stderr);
      return kUsedWrongly;
    }
    addressed = Addressed(app, argc, argv, name);
    app.parse(argc, argv);
    Output("-").Flush();
    return 0;
  } catch (const CLI::CallForHelp&) {
    Output out("-");
    out.Write(addressed->help());
    out.Flush();
    return 0;
  } catch (const CLI::CallForVersion&) {
    Output out("-");
    out.Write("regard " REGARD_VERSION "\n");
    out.Flush();
    return 0;
  } catch (const CLI::ParseError& error) {
    Complain(name, Explain(*addressed, error), true);
    return kUsedWrongly;
  } catch (const UsageError& error) {
    Complain(name, error.what(), true);
    return kUsedWrongly;
  } catch (const std::bad_alloc&) {
    Complain(name, "out of memory", false);
  } catch (const std::exception& error) {
    Complain(name, error.what(), false);
  }
  return kFailed;
}

}  // namespace
}  // namespace regard::cli

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);  // std::cin then knows what is waiting to be read
  try {
    return regard::cli::Run(argc, argv);
  } catch (const std::exception& error) {  // the help page itself could not be written
    std::fprintf(stderr, "regard: %s\n", error.what());
    return 1;
  }
}
