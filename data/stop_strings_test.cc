#include "data/stop_strings.h"

#include <gtest/gtest.h>

#include "data/random.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

TEST(StopStrings, AStopOverSeveralTokensIsNeverPrintedInPart) {
  StopStrings stops({"\n\nROMEO:"});
  EXPECT_EQ(stops.Push("Go.\n"), "Go.");
  EXPECT_EQ(stops.Push("\n"), "");
  EXPECT_EQ(stops.Push("RO"), "");
  EXPECT_EQ(stops.Push("SE:\n"), "\n\nROSE:");  // it was none
  EXPECT_EQ(stops.Push("\nROM"), "");
  EXPECT_FALSE(stops.stopped());
  EXPECT_EQ(stops.Push("EO: I"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.Push("more"), "");
  EXPECT_EQ(stops.Finish(), "");
}

TEST(StopStrings, WhatIsHeldBackComesAtTheEnd) {
  StopStrings stops({"END"});
  EXPECT_EQ(stops.Push("the EN"), "the ");
  EXPECT_EQ(stops.Finish(), "EN");
  EXPECT_FALSE(stops.stopped());
}

TEST(StopStrings, ABeginningInsideABeginningIsFound) {
  StopStrings stops({"aab"});
  EXPECT_EQ(stops.Push("aa"), "");
  EXPECT_EQ(stops.Push("a"), "a");
  EXPECT_EQ(stops.Push("b"), "");
  EXPECT_TRUE(stops.stopped());
}

TEST(StopStrings, TheOneCompleteFirstAndOfThoseTheLongest) {
  StopStrings first({"abc", "b"});
  EXPECT_EQ(first.Push("xabc"), "xa");
  StopStrings longest({"b", "ab"});
  EXPECT_EQ(longest.Push("xab"), "x");
}

TEST(StopStrings, TheSameTextHoweverItIsCut) {
  Random random(9);
  const auto letters = [&random](std::size_t most) {
    std::string text(1 + random.Below(most), 'a');
    for (char& c : text) c = static_cast<char>('a' + random.Below(2));
    return text;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> strings(random.Below(3));
    for (std::string& stop : strings) stop = letters(5);
    const std::string text = letters(20);
    // By the definition: the first end of a stop, then the longest that ends there.
    std::string expected = text;
    bool stopped = false;
    for (std::size_t end = 1; end <= text.size() && !stopped; ++end) {
      for (const std::string& stop : strings) {
        if (!std::string_view(text).substr(0, end).ends_with(stop)) continue;
        stopped = true;
        if (end - stop.size() < expected.size()) expected = text.substr(0, end - stop.size());
      }
    }
    StopStrings stops(strings);
    std::string shown;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t part = 1 + random.Below(rest.size());
      shown += stops.Push(rest.substr(0, part));
      ASSERT_TRUE(expected.starts_with(shown)) << shown;
      rest.remove_prefix(part);
    }
    shown += stops.Finish();
    ASSERT_EQ(shown, expected) << text;
    ASSERT_EQ(stops.stopped(), stopped);
  }
}

TEST(StopStrings, AnEmptyOneIsAnError) {
  EXPECT_THROW(StopStrings({"a", ""}), UsageError);
  StopStrings none({});
  EXPECT_EQ(none.Push("all of it"), "all of it");
}

}  // namespace
}  // namespace regard::data
