// The help page of a command.
#include <fmt/format.h>

#include <algorithm>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/text.h"

namespace regard::cli {
namespace {

constexpr std::size_t kLeft = 28;  // columns of the names; longer ones stand on their own line

std::string Heading(const std::string& text) { return Paint(Style::kBold, text, stdout); }

std::string FullName(const CLI::App* app) {
  return app->get_parent() == nullptr ? app->get_name()
                                      : fmt::format("{} {}", FullName(app->get_parent()), app->get_name());
}

std::string Names(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::string names = option.get_snames().empty() ? "    " : "-" + option.get_snames()[0];
  if (!option.get_lnames().empty())
    names += (option.get_snames().empty() ? "" : ", ") + ("--" + option.get_lnames()[0]);
  const std::string unit = option.get_type_name();
  const bool flag = option.get_items_expected_max() == 0;
  const bool choice = unit.find(' ') != std::string::npos;
  return flag ? names : names + " " + (choice ? "NAME" : unit);
}

std::string Explanation(const CLI::Option& option) {
  std::string text = option.get_description();
  const std::string unit = option.get_type_name();
  if (unit.find(' ') != std::string::npos) text += ": " + unit;
  if (!option.get_default_str().empty()) text += " [" + option.get_default_str() + "]";
  return text;
}

void AddRow(std::string& out, const std::string& left, const std::string& right, std::size_t width) {
  const std::vector<std::string> lines = Wrap(right, width - kLeft - 2);
  out += "  ";
  std::size_t first = 0;
  if (Columns(left) + 2 > kLeft) {
    out += left + "\n";
  } else {
    out += Pad(left, kLeft) + lines[first++] + "\n";
  }
  for (; first < lines.size(); ++first) out += std::string(kLeft + 2, ' ') + lines[first] + "\n";
}

std::string Usage(const CLI::App* app) {
  std::string text = FullName(app);
  const auto subcommands = app->get_subcommands([](const CLI::App*) { return true; });
  if (!subcommands.empty()) text += " COMMAND";
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_positional()) continue;
    text += option->get_required() ? " " + option->get_name(true) : " [" + option->get_name(true) + "]";
  }
  return text + " [OPTION]...";
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
  const auto width = static_cast<std::size_t>(std::clamp(TerminalWidth(stdout), 60, 100));
  std::string out = Heading("Usage: ") + Usage(app) + "\n\n";
  for (const std::string& line : Wrap(app->get_description(), width)) out += line + "\n";

  const auto subcommands = app->get_subcommands([](const CLI::App*) { return true; });
  if (!subcommands.empty()) out += "\n" + Heading("Commands:") + "\n";
  for (const CLI::App* sub : subcommands) {
    const std::string description = sub->get_description();
    AddRow(out, sub->get_name(), description.substr(0, description.find('\n')), width);
  }

  std::vector<std::string> groups{"Arguments"};
  for (const CLI::Option* option : app->get_options()) {
    const std::string group = option->get_positional() ? "Arguments" : option->get_group();
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [](const std::string& group) { return group != "Common options"; });
  for (const std::string& group : groups) {
    std::string rows;
    for (const CLI::Option* option : app->get_options()) {
      const std::string own = option->get_positional() ? "Arguments" : option->get_group();
      if (own == group) AddRow(rows, Names(*option), Explanation(*option), width);
    }
    if (!rows.empty()) out += "\n" + Heading(group + ":") + "\n" + rows;
  }
  if (!app->get_footer().empty()) {
    out += "\n" + Heading("Examples:") + "\n";
    for (const std::string& line : Wrap(app->get_footer(), std::string::npos)) out += "  " + line + "\n";
  }
  return out;
}

}  // namespace regard::cli
