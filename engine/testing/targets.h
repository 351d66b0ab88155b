// Tests that run on every target that this machine has.
#ifndef REGARD_ENGINE_TESTING_TARGETS_H_
#define REGARD_ENGINE_TESTING_TARGETS_H_

#include <gtest/gtest.h>

#include <string>

#include "engine/base/target.h"
#include "engine/kernels/pack.h"

namespace regard::engine {

// A fixture whose parameter is the name of a target; the kernels run on it.
class OnTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Status status = ForceTarget(GetParam());
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(KernelTarget(), GetParam());
  }
  void TearDown() override { ASSERT_TRUE(ForceTarget("").ok()); }
};

// Suite: a fixture derived from OnTarget.
#define REGARD_ON_EVERY_TARGET(Suite)                                   \
  INSTANTIATE_TEST_SUITE_P(Target, Suite, testing::ValuesIn(Targets()), \
                           [](const auto& info) { return info.param; })

}  // namespace regard::engine

#endif  // REGARD_ENGINE_TESTING_TARGETS_H_
