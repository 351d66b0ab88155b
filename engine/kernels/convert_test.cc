// The conversions of 16-bit numbers, over all of them, against arithmetic on their fields.
#include "engine/kernels/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/base/target.h"
#include "engine/testing/tensor.h"

namespace regard::engine {
namespace {

template <typename T>
struct Format;
template <>
struct Format<BFloat16> {
  static constexpr int kExponentBits = 8, kFractionBits = 7;
};
template <>
struct Format<Float16> {
  static constexpr int kExponentBits = 5, kFractionBits = 10;
};

template <typename T>
T FromBits(std::uint32_t bits) {
  T half;
  half.bits = static_cast<std::uint16_t>(bits);
  return half;
}

// (-1)^sign 2^(exponent - bias) (1 + fraction / 2^bits), as IEEE 754 has it.
template <typename T>
double ByFields(std::uint32_t bits) {
  using F = Format<T>;
  constexpr int kBias = (1 << (F::kExponentBits - 1)) - 1, kLargest = (1 << F::kExponentBits) - 1;
  const int exponent = static_cast<int>(bits >> F::kFractionBits) & kLargest;
  const int fraction = static_cast<int>(bits) & ((1 << F::kFractionBits) - 1);
  double size = std::ldexp(fraction, 1 - kBias - F::kFractionBits);
  if (exponent > 0)
    size = std::ldexp(fraction + (1 << F::kFractionBits), exponent - kBias - F::kFractionBits);
  if (exponent == kLargest) size = fraction == 0 ? HUGE_VAL : std::nan("");
  return bits >> 15 ? -size : size;
}

template <typename T>
constexpr std::uint32_t kInfinite = ((1u << Format<T>::kExponentBits) - 1) << Format<T>::kFractionBits;

// from and what Convert makes of it, on every target: the same numbers, in whole and at odd places.
template <typename From, typename To>
void ExpectConverted(const std::vector<From>& from, const std::vector<To>& expected) {
  const auto expect_equal = [](const To& got, const To& right, const From& x, const std::string& target) {
    using Bits = std::conditional_t<sizeof(To) == 2, std::uint16_t, std::uint32_t>;
    ASSERT_EQ(std::bit_cast<Bits>(got), std::bit_cast<Bits>(right))
        << target << " of " << static_cast<float>(x);
  };
  for (const std::string& target : Targets()) {
    ASSERT_TRUE(ForceTarget(target).ok());
    std::vector<To> to(from.size());
    Convert(from.data(), static_cast<std::int64_t>(from.size()), to.data());
    for (std::size_t n = 0; n < from.size(); ++n) expect_equal(to[n], expected[n], from[n], target);
    for (std::size_t n : {0, 1, 7, 16, 37}) {
      std::vector<To> part(n + 1, To(77.0f));
      Convert(from.data() + 3, static_cast<std::int64_t>(n), part.data());
      for (std::size_t x = 0; x < n; ++x) expect_equal(part[x], expected[x + 3], from[x + 3], target);
      EXPECT_EQ(static_cast<float>(part[n]), 77.0f) << "written past the end on " << target;
    }
  }
  ASSERT_TRUE(ForceTarget("").ok());
}

template <typename T>
class Half : public testing::Test {};
using Halves = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(Half, Halves);

TYPED_TEST(Half, EveryNumberBecomesItsFloatAndComesBack) {
  using T = TypeParam;
  std::vector<T> halves;
  std::vector<float> floats;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    halves.push_back(FromBits<T>(bits));
    floats.push_back(halves.back());
    const double right = ByFields<T>(bits);
    const float x = floats.back();
    ASSERT_EQ(std::signbit(x), bits >> 15 == 1) << bits;
    if (std::isnan(right)) {
      ASSERT_TRUE(std::isnan(x)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(x)))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(x), right) << bits;
      ASSERT_EQ(T(x).bits, bits);
    }
  }
  ExpectConverted(halves, floats);
}

TYPED_TEST(Half, FloatsAreRoundedToTheNearestAndTiesToEven) {
  using T = TypeParam;
  std::vector<float> floats;
  std::vector<T> halves;
  const auto check = [&](float x, std::uint32_t bits) {
    ASSERT_EQ(T(x).bits, bits) << x;
    ASSERT_EQ(T(-x).bits, bits | 0x8000) << -x;
    floats.push_back(x), halves.push_back(FromBits<T>(bits));
    floats.push_back(-x), halves.push_back(FromBits<T>(bits | 0x8000));
  };
  for (std::uint32_t bits = 0; bits < kInfinite<T>; ++bits) {
    // Above the largest number, rounding goes as if the next power of two were one.
    const double low = ByFields<T>(bits), step = low - ByFields<T>(bits == 0 ? 1 : bits - 1);
    const double high = bits + 1 < kInfinite<T> ? ByFields<T>(bits + 1) : low + step;
    const auto middle = static_cast<float>((low + high) / 2);
    check(middle, bits + bits % 2);
    check(std::nextafter(middle, 0.0f), bits);
    check(std::nextafter(middle, HUGE_VALF), bits + 1);
  }
  check(std::numeric_limits<float>::max(), kInfinite<T>);
  check(HUGE_VALF, kInfinite<T>);
  check(std::numeric_limits<float>::denorm_min(), 0);
  ExpectConverted(floats, halves);
}

TYPED_TEST(Half, AVectorIsRoundedAsOneNumberIs) {
  using T = TypeParam;
  TestRandom random(1);
  std::vector<float> floats;
  std::vector<T> halves;
  const auto add = [&](std::uint32_t bits) {
    floats.push_back(std::bit_cast<float>(bits));
    halves.push_back(T(floats.back()));
    ASSERT_EQ(std::isnan(floats.back()), std::isnan(static_cast<float>(halves.back()))) << bits;
  };
  for (int n = 0; n < 100000; ++n) add(static_cast<std::uint32_t>(random.Bits() >> 32));
  for (std::uint32_t nan : {0x7F800001u, 0x7FFFFFFFu, 0xFF800001u, 0xFFFFFFFFu, 0x7FC00000u}) add(nan);
  ExpectConverted(floats, halves);
}

TYPED_TEST(Half, IsTwoBytesOfStorage) {
  using T = TypeParam;
  static_assert(sizeof(T) == 2 && alignof(T) == 2 && std::is_trivial_v<T> && std::is_standard_layout_v<T>);
  static_assert(static_cast<float>(T(-1.5f)) == -1.5f);
  static_assert(std::is_convertible_v<T, float> && !std::is_convertible_v<float, T>);
}

}  // namespace
}  // namespace regard::engine
