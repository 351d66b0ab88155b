#include "cli/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/text.h"
#include "engine/base/error.h"

namespace regard::cli {
namespace {

std::string LongestName(const std::string& names) { return names.substr(names.rfind(',') + 1); }

[[noreturn]] void Wrong(const std::string& names, const std::string& text, const std::string& expected) {
  throw UsageError(fmt::format("{} {}: expected {}", LongestName(names), text, expected));
}

template <typename T>
bool Parse(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end && !text.empty();
}

std::string Expected(const Range& range) {
  const bool has_min = std::isfinite(range.min), has_max = std::isfinite(range.max);
  if (has_min && has_max && range.below)
    return fmt::format("a number, at least {} and less than {}", range.min, range.max);
  if (has_min && has_max) return fmt::format("a number from {} to {}", range.min, range.max);
  if (has_min) return fmt::format("a number, at least {}", range.min);
  return "a number";
}

std::int64_t ParseInteger(const std::string& names, const std::string& text, std::int64_t min,
                          std::int64_t max) {
  std::int64_t value = 0;
  if (Parse(text, value) && value >= min && value <= max) return value;
  const bool bounded = max != std::numeric_limits<std::int64_t>::max();
  Wrong(names, text,
        bounded ? fmt::format("a whole number from {} to {}", min, max)
                : fmt::format("a whole number, at least {}", min));
}

CLI::Option* Finish(CLI::Option* option, const std::string& unit, const std::string& shown_default) {
  option->type_name(unit)->take_last();
  if (!shown_default.empty()) option->default_str(shown_default);
  return option;
}

}  // namespace

CLI::App& AddCommand(CLI::App& parent, const std::string& name, const std::string& description,
                     const std::string& example) {
  CLI::App* app = parent.add_subcommand(name, description);
  app->footer(example);
  app->set_help_flag("-h,--help", "Show this help")->group("Common options");
  return *app;
}

void AddCommon(CLI::App& app, Common& common) {
  AddFlag(app, "-q,--quiet", common.quiet, "No messages but warnings and errors")->group("Common options");
  AddInteger(app, "--threads", "N", common.threads, 0, "Threads; 0: one a core", 4096)
      ->group("Common options");
}

CLI::Option* AddInteger(CLI::App& app, const std::string& names, const std::string& unit, std::int64_t& value,
                        std::int64_t min, const std::string& help, std::int64_t max) {
  auto set = [&value, names, min, max](const std::string& text) {
    value = ParseInteger(names, text, min, max);
  };
  return Finish(app.add_option_function<std::string>(names, set, help), unit, fmt::format("{}", value));
}

CLI::Option* AddIntegers(CLI::App& app, const std::string& names, const std::string& unit,
                         std::vector<std::int64_t>& values, std::int64_t min, const std::string& help,
                         std::int64_t max) {
  auto set = [&values, names, min, max](const std::vector<std::string>& texts) {
    values.clear();
    for (const std::string& text : texts) values.push_back(ParseInteger(names, text, min, max));
  };
  return app.add_option_function<std::vector<std::string>>(names, set, help)
      ->type_name(unit)
      ->expected(1, 1000)
      ->default_str(fmt::format("{}", fmt::join(values, " ")));
}

CLI::Option* AddReal(CLI::App& app, const std::string& names, const std::string& unit, double& value,
                     Range range, const std::string& help) {
  auto set = [&value, names, range](const std::string& text) {
    double parsed = 0;
    const bool read = Parse(text, parsed) && std::isfinite(parsed);
    if (!read || parsed < range.min || parsed > range.max || (range.below && parsed == range.max))
      Wrong(names, text, Expected(range));
    value = parsed;
  };
  return Finish(app.add_option_function<std::string>(names, set, help), unit, fmt::format("{}", value));
}

CLI::Option* AddText(CLI::App& app, const std::string& names, const std::string& unit, std::string& value,
                     const std::string& help) {
  return Finish(app.add_option(names, value, help), unit, value);
}

CLI::Option* AddChoice(CLI::App& app, const std::string& names, std::string& value,
                       const std::vector<std::string>& allowed, const std::string& help) {
  auto set = [&value, names, allowed](const std::string& text) {
    for (const std::string& word : allowed) {
      if (word == text) {
        value = text;
        return;
      }
    }
    Wrong(names, text, Listed(allowed) + Suggestion(text, allowed));
  };
  return Finish(app.add_option_function<std::string>(names, set, help), Listed(allowed, "or"), value);
}

CLI::Option* AddFlag(CLI::App& app, const std::string& names, bool& value, const std::string& help) {
  return app.add_flag(names, value, help);
}

void ApplyPreset(CLI::App& app, const PresetValues& values) {
  for (const auto& [name, value] : values) {
    CLI::Option* option = app.get_option(name);
    if (option->count() > 0) continue;
    option->add_result(value);
    option->run_callback();
  }
}

}  // namespace regard::cli
