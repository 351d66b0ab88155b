// Tests that run on every instruction set that this machine has.
#ifndef REGARD_NN_TARGET_TESTING_H_
#define REGARD_NN_TARGET_TESTING_H_

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace regard::nn {

// Runs `body` under each; a product packed for one fits only that one.
template <class Body>
void ForEachTarget(const Body& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace regard::nn

#endif  // REGARD_NN_TARGET_TESTING_H_
