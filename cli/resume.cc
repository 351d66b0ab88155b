#include "cli/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"
#include "engine/base/error.h"

namespace regard::cli {
namespace {

bool IsOneOf(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Options that belong to one call, or that may change when a training goes on.
bool BelongsToTheCall(const std::string& name) {
  return IsOneOf(name, {"output", "resume", "force", "preset", "quiet", "threads", "help"});
}
bool MayChange(const std::string& name) {
  return IsOneOf(name, {"epochs", "max-steps", "max-minutes", "patience"});
}

std::string NameOf(const CLI::Option& option) {
  return option.get_positional() ? option.get_name(true) : option.get_lnames().at(0);
}

// The value of an option as a run keeps it: files by their full path.
std::string Kept(const std::string& name, const CLI::Option& option) {
  const std::string value = option.results().back();
  return IsOneOf(name, {"DATA", "TARGET", "valid"}) && std::filesystem::exists(value)
             ? std::filesystem::absolute(value).lexically_normal().string()
             : value;
}

}  // namespace

nlohmann::json TrainingArguments(const CLI::App& command) {
  nlohmann::json arguments = nlohmann::json::object();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = NameOf(*option);
    if (BelongsToTheCall(name)) continue;
    const std::string value = option->count() > 0 ? Kept(name, *option) : option->get_default_str();
    if (!value.empty()) arguments[name] = value;
  }
  return arguments;
}

void ApplyResumed(CLI::App& command, const nlohmann::json& arguments) {
  PresetValues values;
  for (const auto& [name, value] : arguments.items()) {
    const std::string option = IsOneOf(name, {"DATA", "TARGET"}) ? name : "--" + name;
    values.emplace_back(option, value.get<std::string>());
  }
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = NameOf(*option);
    if (option->count() == 0 || BelongsToTheCall(name) || MayChange(name)) continue;
    const std::string given = Kept(name, *option), kept = arguments.value(name, "");
    if (given != kept) {
      throw UsageError(
          fmt::format("--resume goes on with the run's own {}, {}, not {}; only --epochs, "
                      "--max-steps, --max-minutes and --patience may change",
                      option->get_positional() ? name : "--" + name, kept.empty() ? "none" : kept, given));
    }
  }
  ApplyPreset(command, values);
}

}  // namespace regard::cli
