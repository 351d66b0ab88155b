#include "nn/gru_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "nn/target_testing.h"

namespace regard::nn {
namespace {

template <typename T>
std::vector<T> Normal(std::int64_t n, unsigned seed, double scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<T> values(n);
  for (T& v : values) v = static_cast<T>(normal(random));
  return values;
}

template <typename T>
class Kernels : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Kernels, Types);

TYPED_TEST(Kernels, ProductOfEverySize) {
  using T = TypeParam;
  const double eps = std::numeric_limits<T>::epsilon();
  ForEachTarget([&] {
    for (const std::int64_t rows : {0, 1, 3, 8, 13}) {
      for (const std::int64_t k : {0, 1, 7, 32}) {
        for (const std::int64_t n : {1, 5, 16, 33, 96}) {
          const auto x = Normal<T>(rows * k, 1), w = Normal<T>(k * n, 2), bias = Normal<T>(n, 3);
          std::vector<T> y(rows * n, std::numeric_limits<T>::quiet_NaN());
          const PackedMatrix<T> packed(w.data(), k, n, 1, k, bias.data());
          Product(x.data(), k, rows, packed, y.data(), n);
          for (int pass = 1; pass <= 2; ++pass) {
            for (std::int64_t r = 0; r < rows; ++r) {
              for (std::int64_t c = 0; c < n; ++c) {
                double sum = bias[c], size = std::abs(bias[c]);
                for (std::int64_t i = 0; i < k; ++i) {
                  sum += pass * static_cast<double>(x[r * k + i]) * w[c * k + i];
                  size += pass * std::abs(static_cast<double>(x[r * k + i]) * w[c * k + i]);
                }
                ASSERT_NEAR(y[r * n + c], sum, (k + 1) * eps * size) << rows << " " << k << " " << n;
              }
            }
            if (pass == 1) Product(x.data(), k, rows, packed, y.data(), n, /*accumulate=*/true);
          }
        }
      }
    }
  });
}

// The formula in long double is the reference; the error allowed is a few units in the last place.
TYPED_TEST(Kernels, GatesAreTheFormula) {
  using T = TypeParam;
  const std::int64_t rows = 3, h = 21;
  const auto input = Normal<T>(rows * 3 * h, 1, 4), recurrent = Normal<T>(rows * 3 * h, 2, 4);
  const auto before = Normal<T>(rows * h, 3);
  const double tolerance = 16 * std::numeric_limits<T>::epsilon();
  ForEachTarget([&] {
    std::vector<T> state = before, output(rows * h), saved(rows * 4 * h), previous(rows * h);
    GruForward(GruGates<T>{rows, h, input.data(), recurrent.data(), state.data(), output.data(), h,
                           saved.data(), previous.data()});
    EXPECT_EQ(previous, before);
    EXPECT_EQ(state, output);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < h; ++j) {
        const auto in = [&](int gate) { return static_cast<long double>(input[(row * 3 + gate) * h + j]); };
        const auto rec = [&](int gate) {
          return static_cast<long double>(recurrent[(row * 3 + gate) * h + j]);
        };
        const long double r = 1 / (1 + std::exp(-in(0) - rec(0))), z = 1 / (1 + std::exp(-in(1) - rec(1)));
        const long double n = std::tanh(in(2) + r * rec(2));
        const long double old = before[row * h + j];
        // tanh's own error is relative, that of its argument is carried by the size of the terms
        const double carried =
            tolerance * (1 + std::abs(static_cast<double>(in(2))) + std::abs(static_cast<double>(rec(2))) +
                         std::abs(static_cast<double>(old)));
        EXPECT_NEAR(state[row * h + j], static_cast<double>((1 - z) * n + z * old), carried);
      }
    }
  });
}

TYPED_TEST(Kernels, GatesSaturateAndKeepNaN) {
  using T = TypeParam;
  ForEachTarget([] {
    const T huge = 1e30, nan = std::numeric_limits<T>::quiet_NaN();
    // r, z, n of two units: open and kept, then closed and replaced; a third unit is NaN
    const std::vector<T> input{huge, -huge, 0, huge, -huge, nan, huge, -huge, 0}, zero(9);
    std::vector<T> state{5, 5, 5}, output(3);
    GruForward(GruGates<T>{1, 3, input.data(), zero.data(), state.data(), output.data(), 3});
    EXPECT_EQ(state[0], 5);
    EXPECT_EQ(state[1], -1);
    EXPECT_TRUE(std::isnan(state[2]));
  });
}

TYPED_TEST(Kernels, DropoutIsAPureFunctionOfTheSeed) {
  using T = TypeParam;
  const std::int64_t n = 1 << 18;
  std::vector<T> first(n), again(n), other(n);
  DropoutScales<T>(1, 0.3, n, first.data());
  DropoutScales<T>(2, 0.3, n, other.data());
  ForEachTarget([&] {
    DropoutScales<T>(1, 0.3, n, again.data());
    EXPECT_EQ(first, again);
  });
  std::int64_t dropped = 0, both = 0, neighbours = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (first[i] != 0) {
      EXPECT_EQ(first[i], static_cast<T>(1 / 0.7));
    }
    dropped += first[i] == 0;
    both += first[i] == 0 && other[i] == 0;
    neighbours += i > 0 && first[i] == 0 && first[i - 1] == 0;
  }
  // Four standard deviations
  EXPECT_NEAR(dropped / static_cast<double>(n), 0.3, 4 * std::sqrt(0.3 * 0.7 / n));
  EXPECT_NEAR(both / static_cast<double>(n), 0.09, 4 * std::sqrt(0.09 * 0.91 / n));
  EXPECT_NEAR(neighbours / static_cast<double>(n), 0.09, 5 * std::sqrt(0.09 * 0.91 / n));
}

}  // namespace
}  // namespace regard::nn
