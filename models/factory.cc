#include "models/bahdanau.h"
#include "models/config.h"
#include "models/translation.h"

namespace regard::models {
namespace {

struct Entry {
  const char* name;
  std::shared_ptr<TranslationModel> (*make)(const nlohmann::json& config);
};

template <class Model>
std::shared_ptr<TranslationModel> Make(const nlohmann::json& config) {
  return std::make_shared<Model>(config);
}

constexpr Entry kModels[] = {
    {"bahdanau", Make<Bahdanau>},
};

}  // namespace

std::shared_ptr<TranslationModel> MakeTranslationModel(const nlohmann::json& config) {
  std::vector<std::string> names;
  for (const Entry& entry : kModels) names.emplace_back(entry.name);
  const std::string name = ConfigReader(config).Choice("model", names);
  for (const Entry& entry : kModels) {
    if (name == entry.name) return entry.make(config);
  }
  return nullptr;  // Choice has thrown
}

}  // namespace regard::models
