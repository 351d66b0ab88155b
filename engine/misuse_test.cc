// Misuse of the public headers does not compile.
#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>

#include "regard/attention.h"

namespace regard {
namespace {

template <typename T, std::size_t kRank>
using View = TensorView<T, kRank>;

TEST(Misuse, ATensorOfAnotherRankOrTypeIsNotTaken) {
  static_assert(std::is_convertible_v<View<float, 4>, View<const float, 4>>);
  static_assert(!std::is_convertible_v<View<float, 3>, View<const float, 4>>);
  static_assert(!std::is_convertible_v<View<double, 4>, View<const float, 4>>);
  static_assert(!std::is_assignable_v<decltype(AttentionInputs<float>::q)&, View<double, 4>>);
  static_assert(!std::is_assignable_v<decltype(Keep::keep)&, View<float, 4>>);
  static_assert(!std::is_assignable_v<decltype(Lengths::lengths)&, View<const std::int32_t, 2>>);
}

TEST(Misuse, ConstantMemoryIsNotWritten) {
  static_assert(!std::is_convertible_v<View<const float, 4>, View<float, 4>>);
  static_assert(!std::is_assignable_v<decltype(AttentionOutputs<float>::out)&, View<const float, 4>>);
  static_assert(std::is_same_v<decltype(View<const float, 2>()(0, 0)), const float&>);
}

TEST(Misuse, AnElementNeedsAsManyIndicesAsTheRank) {
  static_assert(std::is_invocable_v<View<float, 3>, int, int, int>);
  static_assert(!std::is_invocable_v<View<float, 3>, int, int>);
  static_assert(!std::is_invocable_v<View<float, 3>, int, int, int, int>);
}

TEST(Misuse, AScoreIsOfTheTensorsType) {
  static_assert(std::is_constructible_v<Score<float>, Additive<float>>);
  static_assert(!std::is_constructible_v<Score<float>, Additive<double>>);
  static_assert(!std::is_constructible_v<Score<float>, const char*>);
}

template <typename T>
concept HasOptions = requires {
  typename AttentionOptions<T>;
};

TEST(Misuse, SixteenBitsAreStorageAndNotCalculatedIn) {
  static_assert(HasOptions<float> && HasOptions<double>);
  static_assert(!HasOptions<BFloat16> && !HasOptions<Float16>);
  static_assert(std::is_same_v<decltype(AttentionUpstream<Float16>::lse), View<const float, 3>>);
  static_assert(!std::is_convertible_v<float, BFloat16>);  // rounding is asked for
  static_assert(!std::is_convertible_v<BFloat16, Float16>);
}

}  // namespace
}  // namespace regard
