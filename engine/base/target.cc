#include "engine/base/target.h"

#include <cstdlib>

#include "hwy/highway.h"

namespace regard::engine {
namespace {

std::vector<std::int64_t> TargetBits() { return hwy::SupportedAndGeneratedTargets(); }

}  // namespace

std::vector<std::string> Targets() {
  std::vector<std::string> names;
  for (std::int64_t target : TargetBits()) names.push_back(hwy::TargetName(target));
  return names;
}

Status ForceTarget(const std::string& name) {
  std::string known;
  for (std::int64_t target : TargetBits()) {
    const std::string target_name = hwy::TargetName(target);
    if (name.empty() || name == target_name) {
      hwy::GetChosenTarget().Update(target);
      return Status();
    }
    known += (known.empty() ? "" : ", ") + target_name;
  }
  return Status::InvalidArgument("REGARD_TARGET is \"" + name + "\"; expected one of " + known);
}

Status ChooseTarget() {
  static const Status chosen = [] {
    const char* name = std::getenv("REGARD_TARGET");
    return ForceTarget(name == nullptr ? "" : name);
  }();
  return chosen;
}

}  // namespace regard::engine
