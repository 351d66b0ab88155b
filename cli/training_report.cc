#include "cli/training_report.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/text.h"

namespace regard::cli {
namespace {

const char* Why(train::StopReason reason) {
  switch (reason) {
    case train::StopReason::kEpochs:
      return "all epochs done";
    case train::StopReason::kSteps:
      return "all steps done";
    case train::StopReason::kMinutes:
      return "the time is up";
    case train::StopReason::kPatience:
      return "validation no longer gets better";
    case train::StopReason::kInterrupted:
      return "interrupted";
    case train::StopReason::kNone:
      break;
  }
  return "";
}

}  // namespace

std::string Hash::Text() const { return fmt::format("{:016x}", value_); }

void SayModel(const std::string& name, const torch::nn::Module& module, const Messages& messages) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  messages.Fact("model", fmt::format("{}, {}", name, Count(count, "parameter")));
}

void SayTrained(const train::TrainResult& result, std::string_view tokens, const std::string& measure,
                const Messages& messages) {
  const double rate = result.step_seconds > 0 ? static_cast<double>(result.tokens) / result.step_seconds : 0;
  messages.Fact("trained",
                fmt::format("{} in {}, {} {}/s: {}", Count(result.steps, "step"), Duration(result.seconds),
                            Grouped(std::llround(rate)), tokens, Why(result.reason)));
  if (result.skipped > 0)
    messages.Warn(
        fmt::format("{} left out for a gradient that was not finite", Count(result.skipped, "step")));
  if (result.best_step >= 0) {
    messages.Fact("best", fmt::format("validation {} {:.4g} after {}", measure, result.best,
                                      Count(result.best_step, "step")));
  }
}

}  // namespace regard::cli
