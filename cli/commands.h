// The subcommands. Each adds itself, its options and what it does to the application.
#ifndef REGARD_CLI_COMMANDS_H_
#define REGARD_CLI_COMMANDS_H_

#include <CLI/App.hpp>

namespace regard::cli {

void AddQuickstart(CLI::App& app);
void AddTrain(CLI::App& app);
void AddTrainText(CLI::App& train);
void AddTrainImages(CLI::App& train);
void AddTranslate(CLI::App& app);
void AddGenerate(CLI::App& app);
void AddClassify(CLI::App& app);
void AddEvaluate(CLI::App& app);
void AddView(CLI::App& app);
void AddAttend(CLI::App& app);
void AddExport(CLI::App& app);
void AddImport(CLI::App& app);
void AddBench(CLI::App& app);
void AddCompare(CLI::App& app);
void AddInfo(CLI::App& app);

}  // namespace regard::cli

#endif  // REGARD_CLI_COMMANDS_H_
