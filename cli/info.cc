// regard info: what this build is made of and runs on.
#include <fmt/format.h>
#include <torch/torch.h>
#include <torch/version.h>
#include <unicode/uversion.h>

#include <CLI/Version.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/threads.h"
#include "regard/attention.h"

namespace regard::cli {
namespace {

struct InfoOptions {
  Common common;
  bool json = false;
};

nlohmann::ordered_json Libraries() {
  return {{"libtorch", TORCH_VERSION},
          {"ICU", U_ICU_VERSION},
          {"SentencePiece", REGARD_SENTENCEPIECE_VERSION},
          {"Highway", REGARD_HIGHWAY_VERSION},
          {"CLI11", CLI11_VERSION},
          {"fmt", REGARD_FMT_VERSION},
          {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                        NLOHMANN_JSON_VERSION_PATCH)}};
}

void RunInfo(const InfoOptions& options) {
  UseThreads(options.common);
  nlohmann::ordered_json info{
      {"version", REGARD_VERSION},        {"instruction_set", InstructionSet()},
      {"threads", at::get_num_threads()}, {"cores", std::thread::hardware_concurrency()},
      {"compiler", REGARD_COMPILER},      {"build", REGARD_BUILD_TYPE},
      {"libraries", Libraries()}};
  Output out("-");
  if (options.json) {
    out.Print("{}\n", info.dump(2));
    return;
  }
  auto row = [&](std::string_view label, const nlohmann::ordered_json& value) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    out.Print("{:<18}{}\n", label, text);
  };
  row("regard", info["version"]);
  row("instruction set", info["instruction_set"]);
  row("threads", info["threads"]);
  row("cores", info["cores"]);
  row("compiler", info["compiler"]);
  row("build", info["build"]);
  for (const auto& [name, version] : info["libraries"].items()) row(name, version);
}

}  // namespace

void AddInfo(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App& command = AddCommand(app, "info", "Show the version, instruction set, threads and libraries",
                                 "regard info\nregard info --json");
  AddFlag(command, "--json", options->json, "As JSON");
  AddCommon(command, options->common);
  command.callback([options] { RunInfo(*options); });
}

}  // namespace regard::cli
