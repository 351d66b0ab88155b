#include "models/bahdanau.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/base/error.h"

namespace regard::models {
namespace {

using nlohmann::json;

TEST(Bahdanau, WrongEntriesAreNamed) {
  const auto message = [](const std::string& entry, const json& value) {
    json config = {{"model", "bahdanau"}, {"source_vocab", 20}, {"target_vocab", 14}, {"embed_dim", 8},
                   {"hidden_dim", 16},    {"num_layers", 2},    {"max_source", 9},    {"max_target", 12}};
    if (value.is_null()) {
      config.erase(entry);
    } else {
      config[entry] = value;
    }
    try {
      MakeTranslationModel(config);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message("hidden_dim", 0),
            "model configuration: \"hidden_dim\" is 0: expected an integer of at least 1");
  EXPECT_EQ(message("embed_dim", nullptr),
            "model configuration: \"embed_dim\" is missing: expected an integer of at least 1");
  EXPECT_EQ(message("dropout", 1.0),
            "model configuration: \"dropout\" is 1.0: expected a number from 0 to less than 1");
  EXPECT_EQ(message("model", "babel"),
            "model configuration: \"model\" is \"babel\": expected \"bahdanau\" or \"transformer\"");
  EXPECT_EQ(message("readout", 3), "model configuration: \"readout\" is 3: expected \"state\" or \"deep\"");
  EXPECT_EQ(message("tied", true),
            "model configuration: \"tied\" is true with \"readout\" \"state\": expected \"deep\"");
}

}  // namespace
}  // namespace regard::models
