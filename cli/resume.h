// What a run remembers of the options it was trained with, and how --resume takes them up.
#ifndef REGARD_CLI_RESUME_H_
#define REGARD_CLI_RESUME_H_

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

namespace regard::cli {

// Every option that describes the training, with its value, so that --resume needs none of them.
nlohmann::json TrainingArguments(const CLI::App& command);

// Gives the options the values that TrainingArguments found. Throws regard::UsageError for an option that is
// given with another value and may not change.
void ApplyResumed(CLI::App& command, const nlohmann::json& arguments);

}  // namespace regard::cli

#endif  // REGARD_CLI_RESUME_H_
