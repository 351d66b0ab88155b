// The error of the vector functions in units in the last place, on every target, against the C library in a
// wider type.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "engine/testing/sizes.h"
#include "engine/testing/targets.h"
#include "engine/testing/tensor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/math_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which these need.
#include "engine/kernels/exp-inl.h"
#include "engine/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// y_x = f(x_x) over n numbers, a multiple of any vector
template <typename T, typename F>
HWY_INLINE void Map(const T* x, std::size_t n, T* y, const F& f) {
  const Lanes<T> d;
  for (std::size_t at = 0; at < n; at += hn::Lanes(d)) hn::StoreU(f(hn::LoadU(d, x + at)), d, y + at);
}

void ExpF32(const float* x, std::size_t n, float* y) {
  Map(x, n, y, [](auto v) HWY_ATTR { return Exp<float>(v); });
}
void ExpF64(const double* x, std::size_t n, double* y) {
  Map(x, n, y, [](auto v) HWY_ATTR { return Exp<double>(v); });
}
void Exp2F32(const float* x, std::size_t n, float* y) {
  Map(x, n, y, [](auto v) HWY_ATTR { return Exp2<float>(v); });
}
void Exp2F64(const double* x, std::size_t n, double* y) {
  Map(x, n, y, [](auto v) HWY_ATTR { return Exp2<double>(v); });
}
void TanhF32(const float* x, std::size_t n, float* y) {
  Map(x, n, y, [](auto v) HWY_ATTR { return Tanh<float>(v); });
}
void TanhF64(const double* x, std::size_t n, double* y) {
  Map(x, n, y, [](auto v) HWY_ATTR { return Tanh<double>(v); });
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::engine {
namespace {

HWY_EXPORT(ExpF32);
HWY_EXPORT(ExpF64);
HWY_EXPORT(Exp2F32);
HWY_EXPORT(Exp2F64);
HWY_EXPORT(TanhF32);
HWY_EXPORT(TanhF64);

constexpr std::size_t kBlock = 4096;

// A float's place among all floats in their order, and back.
std::int64_t Place(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits >= 0 ? bits : std::int64_t{std::numeric_limits<std::int32_t>::min()} - bits;
}
float AtPlace(std::int64_t place) {
  return std::bit_cast<float>(
      static_cast<std::int32_t>(place >= 0 ? place : std::numeric_limits<std::int32_t>::min() - place));
}

// Every 61st float of first .. last; of those close to 0, where all is linear, every 6,100th.
std::vector<float> Floats(float first, float last) {
  const std::int64_t stride = 61 * static_cast<std::int64_t>(kEveryNth);
  std::vector<float> floats{last};
  for (std::int64_t place = Place(first); place < Place(last);) {
    floats.push_back(AtPlace(place));
    place += std::abs(floats.back()) < 0x1p-30f ? 100 * stride : stride;
  }
  return floats;
}

// Doubles of first .. last, evenly spread but for the last digits, and as many close to 0.
std::vector<double> Doubles(double first, double last) {
  TestRandom random(1);
  std::vector<double> doubles;
  for (int n = 0; n < 100000; ++n) {
    const double share = static_cast<double>(random.Bits() >> 11) * 0x1p-53;
    doubles.push_back(first + share * (last - first));
    doubles.push_back(doubles.back() * std::ldexp(1.0, -static_cast<int>(n % 60)));
  }
  return doubles;
}

template <typename T>
double Unit(double y) {
  const int exponent = std::max(std::ilogb(y), std::numeric_limits<T>::min_exponent - 1);
  return std::ldexp(1.0, exponent - std::numeric_limits<T>::digits + 1);
}

class Math : public OnTarget {
 protected:
  // The largest error of f over the numbers, in units in the last place of the right result.
  template <typename T, typename Function, typename Right>
  void ExpectError(const char* name, const std::vector<T>& numbers, const Function& f, const Right& right,
                   double most) {
    double worst = 0;
    T worst_x = 0;
    std::vector<T> x(kBlock), y(kBlock);
    for (std::size_t at = 0; at < numbers.size(); at += kBlock) {
      const std::size_t n = std::min(kBlock, numbers.size() - at);
      std::copy_n(&numbers[at], n, x.begin());
      f(x.data(), kBlock, y.data());
      for (std::size_t i = 0; i < n; ++i) {
        const auto exact = right(x[i]);
        const double error = static_cast<double>(std::abs(static_cast<decltype(exact)>(y[i]) - exact)) /
                             Unit<T>(static_cast<double>(exact));
        if (error <= worst) continue;
        worst = error, worst_x = x[i];
      }
    }
    std::printf("%s on %s: %.3f units in the last place, at %.9g\n", name, GetParam().c_str(), worst,
                static_cast<double>(worst_x));
    EXPECT_LE(worst, most) << name << " at " << worst_x;
  }

  template <typename T, typename Function>
  static T Of(const Function& f, T x) {
    std::vector<T> in(kPad, x), out(kPad);
    f(in.data(), in.size(), out.data());
    return out[1];
  }

  template <typename T, typename Function>
  static void ExpectEnds(const Function& exp) {
    const T infinity = std::numeric_limits<T>::infinity();
    EXPECT_EQ(Of(exp, -infinity), 0);
    EXPECT_EQ(Of(exp, std::numeric_limits<T>::lowest()), 0);
    EXPECT_EQ(Of(exp, T(0)), 1);
    EXPECT_EQ(Of(exp, T(-0.0)), 1);
    EXPECT_TRUE(std::isnan(Of(exp, std::numeric_limits<T>::quiet_NaN())));
  }
};

REGARD_ON_EVERY_TARGET(Math);

const auto exp32 = [](const float* x, std::size_t n, float* y) { HWY_DYNAMIC_DISPATCH(ExpF32)(x, n, y); };
const auto exp64 = [](const double* x, std::size_t n, double* y) { HWY_DYNAMIC_DISPATCH(ExpF64)(x, n, y); };
const auto two32 = [](const float* x, std::size_t n, float* y) { HWY_DYNAMIC_DISPATCH(Exp2F32)(x, n, y); };
const auto two64 = [](const double* x, std::size_t n, double* y) { HWY_DYNAMIC_DISPATCH(Exp2F64)(x, n, y); };
const auto tanh32 = [](const float* x, std::size_t n, float* y) { HWY_DYNAMIC_DISPATCH(TanhF32)(x, n, y); };
const auto tanh64 = [](const double* x, std::size_t n, double* y) { HWY_DYNAMIC_DISPATCH(TanhF64)(x, n, y); };

TEST_P(Math, ExpErrsByAtMostTwoUnitsInTheLastPlace) {
  ExpectError(
      "exp", Floats(-87.3f, 88.7f), exp32, [](float x) { return std::exp(static_cast<double>(x)); }, 2);
  ExpectError(
      "exp", Doubles(-708, 705), exp64, [](double x) { return std::exp(static_cast<long double>(x)); }, 2);
  ExpectEnds<float>(exp32);
  ExpectEnds<double>(exp64);
}

TEST_P(Math, Exp2ErrsByAtMostTwoUnitsInTheLastPlace) {
  ExpectError(
      "exp2", Floats(-100, 0), two32, [](float x) { return std::exp2(static_cast<double>(x)); }, 2);
  ExpectEnds<float>(two32);
  ExpectEnds<double>(two64);
}

TEST_P(Math, TanhErrsByAtMostTwoUnitsInTheLastPlace) {
  ExpectError(
      "tanh", Floats(-12, 12), tanh32, [](float x) { return std::tanh(static_cast<double>(x)); }, 2);
  ExpectError(
      "tanh", Doubles(-25, 25), tanh64, [](double x) { return std::tanh(static_cast<long double>(x)); }, 2);
  EXPECT_EQ(Of(tanh32, std::numeric_limits<float>::infinity()), 1);
  EXPECT_EQ(Of(tanh32, -std::numeric_limits<float>::infinity()), -1);
  EXPECT_EQ(Of(tanh64, std::numeric_limits<double>::max()), 1);
  EXPECT_TRUE(std::isnan(Of(tanh32, std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(Of(tanh64, std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace regard::engine
#endif  // HWY_ONCE
