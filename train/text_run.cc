#include "train/text_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "data/file.h"
#include "engine/base/error.h"
#include "models/gpt2_layout.h"

namespace regard::train {
namespace {

constexpr char kTokenizer[] = "tokenizer";

void ExpectVocabulary(const std::string& origin, std::int64_t tokens, const nlohmann::json& model) {
  if (model.value("vocab", nlohmann::json()) == tokens) return;
  throw Error(fmt::format("{}: the vocabulary has {} entries, the model's weights expect {}", origin, tokens,
                          model.value("vocab", nlohmann::json()).dump()));
}

}  // namespace

TextRun TextRun::Make(const std::string& path, const TextSetup& setup,
                      std::shared_ptr<models::LanguageModel> model, bool force) {
  nlohmann::json config = {{"model", model->config()},
                           {"tokenizer", data::TokenizerKindName(setup.tokenizer->kind())},
                           {"training", setup.training}};
  const auto add_files = [&](const std::string& folder) { setup.tokenizer->Save(folder, kTokenizer); };
  TextRun run(RunDirectory::Create(path, kKind, std::move(config), WeightsOf(*model), add_files, force));
  run.model_ = std::move(model);
  run.tokenizer_ = setup.tokenizer;
  return run;
}

TextRun TextRun::Create(const std::string& path, const TextSetup& setup, bool force) {
  RunDirectory::CheckVacant(path, force);
  torch::manual_seed(setup.seed);
  return Make(path, setup, models::MakeLanguageModel(setup.model), force);
}

TextRun TextRun::Load(const std::string& path) {
  TextRun run(RunDirectory::Open(path, kKind, {"model", "training"}));
  const nlohmann::json& config = run.directory_.config();
  run.tokenizer_ = data::Tokenizer::Load(run.directory_.path(), kTokenizer);
  ExpectVocabulary(run.directory_.path(), run.tokenizer_->size(), config["model"]);
  run.model_ = models::MakeLanguageModel(config["model"]);
  run.directory_.LoadWeights(*run.model_);
  run.model_->eval();
  return run;
}

void TextRun::Export(const std::string& folder) const {
  const auto* gpt = dynamic_cast<const models::Gpt*>(model_.get());
  if (gpt == nullptr) throw Error(fmt::format("{}: only a gpt has GPT-2's layout", directory_.path()));
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) throw Error(fmt::format("cannot create {}: {}", folder, code.message()));
  tokenizer_->Save(folder, kTokenizer);
  WriteWeights(folder + "/model.safetensors", models::ToGpt2(*gpt));
  data::WriteFileAtomically(folder + "/config.json", models::ToGpt2Config(*gpt).dump(2) + "\n");
}

TextRun TextRun::Import(const std::string& folder, const std::string& path, bool force) {
  RunDirectory::CheckVacant(path, force);
  const std::string name = folder + "/config.json";
  const nlohmann::json config =
      nlohmann::json::parse(data::ReadFile(name), nullptr, /*allow_exceptions=*/false);
  TextSetup setup;
  try {
    setup.model = models::FromGpt2Config(config);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
  setup.tokenizer = data::Tokenizer::Load(folder, kTokenizer);
  ExpectVocabulary(folder, setup.tokenizer->size(), setup.model);
  auto model = std::make_shared<models::Gpt>(setup.model);
  const std::string weights = folder + "/model.safetensors";
  models::FromGpt2(ReadWeights(weights), *model, weights);
  model->eval();
  return Make(path, setup, std::move(model), force);
}

data::TextReading ReadingFor(data::TokenizerKind kind, bool replace_invalid) {
  return {.utf8 = replace_invalid ? data::Utf8Policy::kReplace : data::Utf8Policy::kError,
          .raw = kind == data::TokenizerKind::kBytes};
}

}  // namespace regard::train
