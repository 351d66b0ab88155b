#include "models/config.h"

#include "engine/base/error.h"

namespace regard::models {
namespace {

// The value, or its default where it is absent.
template <typename T, class Valid>
T Read(const nlohmann::json& config, const std::string& name, const std::optional<T>& otherwise,
       const std::string& expected, const Valid& valid) {
  const auto entry = config.find(name);
  if (entry == config.end()) {
    if (otherwise) return *otherwise;
    throw Error("model configuration: \"" + name + "\" is missing: expected " + expected);
  }
  if (!valid(*entry)) {
    throw Error("model configuration: \"" + name + "\" is " + entry->dump() + ": expected " + expected);
  }
  return entry->template get<T>();
}

}  // namespace

ConfigReader::ConfigReader(const nlohmann::json& config) : config_(config) {
  if (!config.is_object()) throw Error("model configuration: " + config.dump() + ": expected an object");
}

std::int64_t ConfigReader::Integer(const std::string& name, std::int64_t least,
                                   std::optional<std::int64_t> otherwise) const {
  return Read(
      config_, name, otherwise, "an integer of at least " + std::to_string(least),
      [least](const auto& v) { return v.is_number_integer() && v.template get<std::int64_t>() >= least; });
}

double ConfigReader::Probability(const std::string& name, std::optional<double> otherwise) const {
  return Read(config_, name, otherwise, "a number from 0 to less than 1", [](const auto& v) {
    return v.is_number() && v.template get<double>() >= 0 && v.template get<double>() < 1;
  });
}

bool ConfigReader::Boolean(const std::string& name, std::optional<bool> otherwise) const {
  return Read(config_, name, otherwise, "true or false", [](const auto& v) { return v.is_boolean(); });
}

std::string ConfigReader::Choice(const std::string& name, const std::vector<std::string>& choices,
                                 std::optional<std::string> otherwise) const {
  std::string expected;
  for (const auto& c : choices) expected += (expected.empty() ? "\"" : " or \"") + c + "\"";
  return Read(config_, name, otherwise, expected, [&](const auto& v) {
    if (!v.is_string()) return false;
    for (const auto& c : choices) {
      if (v.template get<std::string>() == c) return true;
    }
    return false;
  });
}

}  // namespace regard::models
