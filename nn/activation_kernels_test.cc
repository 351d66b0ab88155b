#include "nn/activation_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "nn/target_testing.h"

namespace regard::nn {
namespace {

constexpr Activation kAll[] = {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh};

double Formula(Activation activation, double x) {
  if (activation == Activation::kRelu) return x < 0 ? 0 : x;
  if (activation == Activation::kGelu) return x / 2 * std::erfc(-x / std::sqrt(2));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1)) * (x + 0.044715 * x * x * x)));
}

double Slope(Activation activation, double x) {
  if (activation == Activation::kRelu) return x > 0 ? 1 : 0;
  const double step = 1e-5;
  return (Formula(activation, x + step) - Formula(activation, x - step)) / (2 * step);
}

TEST(Activations, OfEverySizeAreTheFormulasAndTheirSlopes) {
  ForEachTarget([&] {
    for (const Activation activation : kAll) {
      for (const std::int64_t n : {1, 7, 16, 33, 200}) {
        std::vector<float> x(n + 1, 4), dy(n + 1, 2);
        for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i - n / 2) / 8;
        std::vector<float> y(n + 1, 5), dx(n + 1, 5);
        Activate(activation, n, x.data(), y.data());
        ActivateBackward(activation, n, x.data(), dy.data(), dx.data());
        for (std::int64_t i = 0; i < n; ++i) {
          ASSERT_NEAR(y[i], Formula(activation, x[i]), 4e-7 * (1 + std::abs(x[i]))) << x[i];
          ASSERT_NEAR(dx[i], 2 * Slope(activation, x[i]), 2e-6 * (1 + std::abs(x[i]))) << x[i];
        }
        ASSERT_EQ(y[n], 5);
        ASSERT_EQ(dx[n], 5);
        Activate(activation, n, x.data(), x.data());
        ActivateBackward(activation, 0, nullptr, nullptr, nullptr);
        for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(x[i], y[i]);
      }
    }
  });
}

TEST(Activations, FarOutAndNotANumber) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  ForEachTarget([&] {
    for (const Activation activation : kAll) {
      const std::vector<float> x{-1e30F, 1e30F, kNaN, -50, 50}, ones(5, 1.0F);
      std::vector<float> y(5), dx(5);
      Activate(activation, 5, x.data(), y.data());
      ActivateBackward(activation, 5, x.data(), ones.data(), dx.data());
      EXPECT_EQ(y[0], 0);
      EXPECT_EQ(y[1], 1e30F);
      EXPECT_TRUE(std::isnan(y[2]));
      EXPECT_EQ(y[3], 0);
      EXPECT_EQ(y[4], 50);
      EXPECT_EQ(dx[0], 0);
      EXPECT_EQ(dx[1], 1);
      EXPECT_TRUE(activation == Activation::kRelu || std::isnan(dx[2]));
      EXPECT_EQ(dx[3], 0);
      EXPECT_EQ(dx[4], 1);
    }
  });
}

}  // namespace
}  // namespace regard::nn
