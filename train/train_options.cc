#include <fmt/format.h>

#include "engine/base/error.h"
#include "train/trainer.h"

namespace regard::train {

NLOHMANN_JSON_SERIALIZE_ENUM(NonFinite, {{NonFinite::kStop, "stop"}, {NonFinite::kSkip, "skip"}})

void to_json(nlohmann::json& json, const TrainOptions& o) {
  json = {{"epochs", o.epochs},
          {"max_steps", o.max_steps},
          {"max_minutes", o.max_minutes},
          {"schedule", o.schedule.kind},
          {"rate", o.schedule.rate},
          {"warmup_steps", o.schedule.warmup_steps},
          {"floor", o.schedule.floor},
          {"beta1", o.adam.beta1},
          {"beta2", o.adam.beta2},
          {"eps", o.adam.eps},
          {"weight_decay", o.adam.weight_decay},
          {"decay_matrices_only", o.adam.decay_matrices_only},
          {"decoupled", o.adam.decoupled},
          {"clip", o.clip},
          {"accumulation", o.accumulation},
          {"shares", o.shares},
          {"non_finite", o.non_finite},
          {"seed", o.seed},
          {"validate_every", o.validate_every},
          {"best", o.best},
          {"maximize", o.maximize},
          {"patience", o.patience},
          {"log_every", o.log_every},
          {"checkpoint_seconds", o.checkpoint_seconds}};
}

void from_json(const nlohmann::json& json, TrainOptions& o) {
  const auto get = [&](const char* name, auto& value) {
    const auto found = json.find(name);
    if (found == json.end()) throw Error(fmt::format("training options: \"{}\" is missing", name));
    try {
      found->get_to(value);
    } catch (const nlohmann::json::exception&) {
      throw Error(fmt::format("training options: \"{}\" is {}, of the wrong type", name, found->dump()));
    }
  };
  get("epochs", o.epochs);
  get("max_steps", o.max_steps);
  get("max_minutes", o.max_minutes);
  get("schedule", o.schedule.kind);
  get("rate", o.schedule.rate);
  get("warmup_steps", o.schedule.warmup_steps);
  get("floor", o.schedule.floor);
  get("beta1", o.adam.beta1);
  get("beta2", o.adam.beta2);
  get("eps", o.adam.eps);
  get("weight_decay", o.adam.weight_decay);
  get("decay_matrices_only", o.adam.decay_matrices_only);
  get("decoupled", o.adam.decoupled);
  get("clip", o.clip);
  get("accumulation", o.accumulation);
  if (json.contains("shares")) get("shares", o.shares);  // older runs have none
  get("non_finite", o.non_finite);
  get("seed", o.seed);
  get("validate_every", o.validate_every);
  get("best", o.best);
  get("maximize", o.maximize);
  get("patience", o.patience);
  get("log_every", o.log_every);
  get("checkpoint_seconds", o.checkpoint_seconds);
}

}  // namespace regard::train
