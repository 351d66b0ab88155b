// A trained language model: its run directory, tokeniser and weights.
#ifndef REGARD_TRAIN_TEXT_RUN_H_
#define REGARD_TRAIN_TEXT_RUN_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "data/corpus.h"
#include "data/tokenizer.h"
#include "models/language.h"
#include "train/run_directory.h"

namespace regard::train {

struct TextSetup {
  nlohmann::json model;  // for models::MakeLanguageModel
  std::shared_ptr<data::Tokenizer> tokenizer;
  nlohmann::json training = nlohmann::json::object();  // what the command wants to find again
  std::uint64_t seed = 0;                              // of the fresh weights
};

class TextRun {
 public:
  static constexpr char kKind[] = "text";

  // Makes the run directory with fresh weights. Errors as RunDirectory::Create and MakeLanguageModel.
  static TextRun Create(const std::string& path, const TextSetup& setup, bool force);
  // Loads a run with its best weights, in evaluation mode. Throws regard::Error as RunDirectory::Open, and
  // when the vocabulary does not fit the weights.
  static TextRun Load(const std::string& path);

  // GPT-2's layout: FOLDER/model.safetensors and config.json (models/gpt2_layout.h), and the tokeniser's
  // files. Throws regard::Error naming the file, or when the model has no such layout.
  void Export(const std::string& folder) const;
  // A run from such a folder.
  static TextRun Import(const std::string& folder, const std::string& path, bool force);

  RunDirectory& directory() { return directory_; }
  models::LanguageModel& model() { return *model_; }
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }
  const nlohmann::json& training() const { return directory_.config().at("training"); }

 private:
  explicit TextRun(RunDirectory directory) : directory_(std::move(directory)) {}
  static TextRun Make(const std::string& path, const TextSetup& setup,
                      std::shared_ptr<models::LanguageModel> model, bool force);

  RunDirectory directory_;
  std::shared_ptr<models::LanguageModel> model_;
  std::shared_ptr<data::Tokenizer> tokenizer_;
};

// How the tokeniser of a run wants its text read: that of bytes takes it as it lies.
data::TextReading ReadingFor(data::TokenizerKind kind, bool replace_invalid);

}  // namespace regard::train

#endif  // REGARD_TRAIN_TEXT_RUN_H_
