// Reading a model's configuration, with errors that name the entry.
#ifndef REGARD_MODELS_CONFIG_H_
#define REGARD_MODELS_CONFIG_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace regard::models {

// Each throws regard::Error naming the entry, its value and what was expected. An entry that is absent takes
// its default; without one it is an error.
class ConfigReader {
 public:
  explicit ConfigReader(const nlohmann::json& config);

  std::int64_t Integer(const std::string& name, std::int64_t least,
                       std::optional<std::int64_t> otherwise = {}) const;
  // 0 <= value < 1
  double Probability(const std::string& name, std::optional<double> otherwise = {}) const;
  bool Boolean(const std::string& name, std::optional<bool> otherwise = {}) const;
  std::string Choice(const std::string& name, const std::vector<std::string>& choices,
                     std::optional<std::string> otherwise = {}) const;

 private:
  const nlohmann::json& config_;
};

}  // namespace regard::models

#endif  // REGARD_MODELS_CONFIG_H_
