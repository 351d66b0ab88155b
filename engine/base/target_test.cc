// Run by ctest once for each value of REGARD_TARGET that the build knows, and once with a wrong one.
#include "engine/base/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "engine/testing/case.h"

namespace regard::engine {
namespace {

std::string Asked() {
  const char* name = std::getenv("REGARD_TARGET");
  return name == nullptr ? "" : name;
}

TEST(Target, IsTheOneThatTheEnvironmentNames) {
  const auto targets = Targets();
  ASSERT_FALSE(targets.empty());
  const Case<float> c(Spec{});
  const Status status = c.Forward();
  if (Asked().empty()) {
    EXPECT_EQ(InstructionSet(), targets.front());
  } else if (std::count(targets.begin(), targets.end(), Asked())) {
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(InstructionSet(), Asked());
  } else {
    // Not known, or not one that this machine can run.
    EXPECT_THAT(status.message(),
                testing::HasSubstr("REGARD_TARGET is \"" + Asked() + "\"; expected one of "));
    EXPECT_THAT(status.message(), testing::HasSubstr(targets.front()));
    EXPECT_STREQ(InstructionSet(), "none");
  }
}

}  // namespace
}  // namespace regard::engine
