// Options that say what they expect, shared by every subcommand.
#ifndef REGARD_CLI_OPTIONS_H_
#define REGARD_CLI_OPTIONS_H_

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace regard::cli {

// Options of every subcommand.
struct Common {
  bool quiet = false;
  std::int64_t threads = 0;  // 0: as many as the machine has cores
};

// A subcommand `name` of `parent`; `example` is one or more command lines, shown by --help.
CLI::App& AddCommand(CLI::App& parent, const std::string& name, const std::string& description,
                     const std::string& example);
void AddCommon(CLI::App& app, Common& common);

// `names` is CLI11's ("-o,--output"; without dashes: a positional argument); `unit` names the value in help.
// The value's content when the option is added is its default and shown as such; a wrong value is a usage
// error that names the option, the value and what was expected.
CLI::Option* AddInteger(CLI::App& app, const std::string& names, const std::string& unit, std::int64_t& value,
                        std::int64_t min, const std::string& help,
                        std::int64_t max = std::numeric_limits<std::int64_t>::max());
// Several of them after one name.
CLI::Option* AddIntegers(CLI::App& app, const std::string& names, const std::string& unit,
                         std::vector<std::int64_t>& values, std::int64_t min, const std::string& help,
                         std::int64_t max = std::numeric_limits<std::int64_t>::max());
// min <= value <= max, or value < max when `below` is set
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool below = false;
};
CLI::Option* AddReal(CLI::App& app, const std::string& names, const std::string& unit, double& value,
                     Range range, const std::string& help);
CLI::Option* AddText(CLI::App& app, const std::string& names, const std::string& unit, std::string& value,
                     const std::string& help);
CLI::Option* AddChoice(CLI::App& app, const std::string& names, std::string& value,
                       const std::vector<std::string>& allowed, const std::string& help);
CLI::Option* AddFlag(CLI::App& app, const std::string& names, bool& value, const std::string& help);

// Gives options the values of a preset, except those that the user gave.
using PresetValues = std::vector<std::pair<std::string, std::string>>;
void ApplyPreset(CLI::App& app, const PresetValues& values);

// Help: usage, what it does, arguments and options in wrapped columns, examples.
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace regard::cli

#endif  // REGARD_CLI_OPTIONS_H_
