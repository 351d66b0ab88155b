#include "train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/error.h"

namespace regard::train {

double Schedule::At(std::int64_t step, std::int64_t total_steps) const {
  const double t = static_cast<double>(step) + 1, warmup = static_cast<double>(warmup_steps);
  if (t <= warmup) return rate * t / warmup;
  switch (kind) {
    case Kind::kConstant:
      return rate;
    case Kind::kCosine: {
      const double length = std::max(static_cast<double>(total_steps) - warmup, 1.0);
      const double done = std::min((t - warmup) / length, 1.0);
      return rate * (floor + (1 - floor) * (1 + std::cos(std::numbers::pi * done)) / 2);
    }
    case Kind::kInverseSqrt:
      return rate * std::sqrt(std::max(warmup, 1.0) / t);
  }
  return rate;
}

Schedule::Kind ParseScheduleKind(const std::string& name) {
  if (name == "constant") return Schedule::Kind::kConstant;
  if (name == "cosine") return Schedule::Kind::kCosine;
  if (name == "invsqrt") return Schedule::Kind::kInverseSqrt;
  throw UsageError(fmt::format("unknown schedule \"{}\": expected constant, cosine or invsqrt", name));
}

}  // namespace regard::train
