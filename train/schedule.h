// Learning-rate schedules: pure functions of the step.
#ifndef REGARD_TRAIN_SCHEDULE_H_
#define REGARD_TRAIN_SCHEDULE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace regard::train {

// With t = step + 1 (steps count from 0), W = warmup_steps and N = total_steps, while t <= W every schedule
// is rate * t / W; after that
//   constant   rate
//   cosine     rate * (floor + (1 - floor) * (1 + cos(pi * (t - W) / (N - W))) / 2), and rate * floor past N
//              (Loshchilov and Hutter, 2017)
//   invsqrt    rate * sqrt(max(W, 1) / t)   (Vaswani et al., 2017)
struct Schedule {
  enum class Kind { kConstant, kCosine, kInverseSqrt };
  Kind kind = Kind::kConstant;
  double rate = 1e-3;
  std::int64_t warmup_steps = 0;
  double floor = 0;  // fraction of rate where cosine ends

  // total_steps is only used by cosine, and has to be positive there.
  double At(std::int64_t step, std::int64_t total_steps) const;
};

NLOHMANN_JSON_SERIALIZE_ENUM(Schedule::Kind, {{Schedule::Kind::kConstant, "constant"},
                                              {Schedule::Kind::kCosine, "cosine"},
                                              {Schedule::Kind::kInverseSqrt, "invsqrt"}})

// "constant", "cosine" or "invsqrt"; throws regard::UsageError that lists them.
Schedule::Kind ParseScheduleKind(const std::string& name);

}  // namespace regard::train

#endif  // REGARD_TRAIN_SCHEDULE_H_
