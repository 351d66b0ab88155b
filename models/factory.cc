#include "models/bahdanau.h"
#include "models/classification.h"
#include "models/config.h"
#include "models/gpt.h"
#include "models/image_classifier.h"
#include "models/language.h"
#include "models/transformer.h"
#include "models/translation.h"

namespace regard::models {
namespace {

template <class Base>
struct Entry {
  const char* name;
  std::shared_ptr<Base> (*make)(const nlohmann::json& config);
};

template <class Base, class Model>
std::shared_ptr<Base> Make(const nlohmann::json& config) {
  return std::make_shared<Model>(config);
}

constexpr Entry<TranslationModel> kTranslationModels[] = {
    {"bahdanau", Make<TranslationModel, Bahdanau>},
    {"transformer", Make<TranslationModel, Transformer>},
};
constexpr Entry<LanguageModel> kLanguageModels[] = {
    {"gpt", Make<LanguageModel, Gpt>},
};
constexpr Entry<ClassificationModel> kClassificationModels[] = {
    {"image_transformer", Make<ClassificationModel, ImageTransformer>},
};

template <class Base, std::size_t kCount>
std::shared_ptr<Base> MakeNamed(const nlohmann::json& config, const Entry<Base> (&entries)[kCount]) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  const std::string name = ConfigReader(config).Choice("model", names);
  for (const auto& entry : entries) {
    if (name == entry.name) return entry.make(config);
  }
  return nullptr;  // Choice has thrown
}

}  // namespace

std::shared_ptr<TranslationModel> MakeTranslationModel(const nlohmann::json& config) {
  return MakeNamed(config, kTranslationModels);
}

std::shared_ptr<LanguageModel> MakeLanguageModel(const nlohmann::json& config) {
  return MakeNamed(config, kLanguageModels);
}

std::shared_ptr<ClassificationModel> MakeClassificationModel(const nlohmann::json& config) {
  return MakeNamed(config, kClassificationModels);
}

}  // namespace regard::models
