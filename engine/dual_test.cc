// Numbers that carry derivatives: against the functions of the C library and finite differences.
#include "regard/dual.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace regard {
namespace {

// How far x is from `right`, in units of T's last place there.
template <typename T>
double Places(T x, long double right) {
  const T near = static_cast<T>(right);
  if (x == near) return 0;
  const T size = std::abs(near), next = std::nextafter(size, std::numeric_limits<T>::infinity());
  return static_cast<double>(std::abs((x - right) / (static_cast<long double>(next) - size)));
}

template <typename T>
void ExpAndTanhAreNear(T range, T step) {
  double exp = 0, tanh = 0;
  for (T x = -range; x < range; x += step) {
    exp = std::max(exp, Places(Exp(x), std::exp(static_cast<long double>(x))));
    const T small = x / 32;
    tanh = std::max(tanh, Places(Tanh(small), std::tanh(static_cast<long double>(small))));
  }
  for (T x = T(1); x > T(1e-30); x *= T(0.93)) {
    exp = std::max(exp, Places(Exp(-x), std::exp(static_cast<long double>(-x))));
    tanh = std::max(tanh, Places(Tanh(x), std::tanh(static_cast<long double>(x))));
  }
  EXPECT_LE(exp, 1.5);
  EXPECT_LE(tanh, 3);
  constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNaN = std::numeric_limits<T>::quiet_NaN();
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-kInfinity), 0);
  EXPECT_EQ(Exp(T(0)), 1);
  EXPECT_TRUE(std::isnan(Exp(kNaN)));
  EXPECT_EQ(Tanh(kInfinity), 1);
  EXPECT_EQ(Tanh(-kInfinity), -1);
  EXPECT_TRUE(std::signbit(Tanh(T(-0.0))));
  EXPECT_TRUE(std::isnan(Tanh(kNaN)));
}

TEST(Dual, ExpAndTanhAreWithinAFewUnitsInTheLastPlace) {
  ExpAndTanhAreNear<float>(110, 0.00137f);
  ExpAndTanhAreNear<double>(750, 0.0137);
}

// All operations in one formula.
template <typename N>
N Formula(const N& x, const N& y) {
  N z = x * y - x / (y + 3) + 2 * Exp(x) - Log(y) / 4;
  z += Tanh(x * y);
  z -= Sin(x) * Cos(y);
  z *= Sqrt(y);
  z /= 1 + Abs(x);
  return -z + Max(x, y) + 3 * Min(x, 0.5);
}

TEST(Dual, DerivativesAreThoseOfFiniteDifferences) {
  constexpr double kStep = 1e-6;
  for (double x : {-1.3, -0.2, 0.4, 2.1}) {
    for (double y : {0.3, 1.7}) {
      using Number = Dual<double, 2>;
      const Number f = Formula(Number(x, 0), Number(y, 1));
      EXPECT_DOUBLE_EQ(f.value, Formula(x, y));
      EXPECT_NEAR(f.slope[0], (Formula(x + kStep, y) - Formula(x - kStep, y)) / (2 * kStep), 1e-8);
      EXPECT_NEAR(f.slope[1], (Formula(x, y + kStep) - Formula(x, y - kStep)) / (2 * kStep), 1e-8);
    }
  }
}

}  // namespace
}  // namespace regard
