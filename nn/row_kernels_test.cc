#include "nn/row_kernels.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace regard::nn {
namespace {

constexpr double kEps = std::numeric_limits<float>::epsilon();

// Runs `body` under each instruction set that this machine has.
template <class Body>
void ForEachTarget(const Body& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

std::vector<float> Normal(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

TEST(RowProduct, OfEverySizeIsTheSumInDoublesAndTheSameBitsInAnyRowsAndParts) {
  ForEachTarget([&] {
    for (const std::int64_t inner : {0, 1, 7, 16, 33, 200}) {
      for (const std::int64_t columns : {1, 2, 5, 12}) {
        const std::int64_t rows = 7;
        const auto x = Normal(rows * inner, 1), w = Normal(columns * inner, 2), bias = Normal(columns, 3);
        const auto before = Normal(rows * columns, 4);
        for (const bool add : {false, true}) {
          auto y = before;
          const RowProduct product{rows, inner, columns, x.data(), w.data(), bias.data(), y.data(), add};
          Product(product, 0, columns);
          for (std::int64_t r = 0; r < rows; ++r) {
            std::vector<float> alone(before.begin() + r * columns, before.begin() + (r + 1) * columns);
            const RowProduct row{1,        inner,       columns,      x.data() + r * inner,
                                 w.data(), bias.data(), alone.data(), add};
            Product(row, 0, columns / 2);
            Product(row, columns / 2, columns);
            for (std::int64_t c = 0; c < columns; ++c) {
              double sum = bias[c] + (add ? before[r * columns + c] : 0.0), size = std::abs(sum) + 2;
              for (std::int64_t k = 0; k < inner; ++k) {
                const double term = static_cast<double>(x[r * inner + k]) * w[c * inner + k];
                sum += term;
                size += std::abs(term);
              }
              ASSERT_NEAR(y[r * columns + c], sum, kEps * (inner + 2) * size) << inner << " " << columns;
              ASSERT_EQ(y[r * columns + c], alone[c]) << inner << " " << columns;
            }
          }
        }
      }
    }
  });
}

TEST(RowProduct, WithoutABiasThatOfZeros) {
  const std::vector<float> x{1, 2, 3}, w{4, 5, 6};
  float y = 100;
  Product({1, 3, 1, x.data(), w.data(), nullptr, &y, false}, 0, 1);
  EXPECT_EQ(y, 32);
}

TEST(RowNorm, HasMeanZeroAndVarianceOneBeforeWeightAndBias) {
  ForEachTarget([&] {
    for (const std::int64_t width : {1, 7, 16, 33, 384}) {
      auto x = Normal(width, 5);
      for (float& v : x) v += 3;  // a mean that sums of squares would lose digits to
      const auto weight = Normal(width, 6), bias = Normal(width, 7);
      double mean = 0, variance = 0;
      for (const float v : x) mean += v / static_cast<double>(width);
      for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(width);
      for (const bool with_bias : {false, true}) {
        std::vector<float> y(width);
        Normalize({width, 1e-5, weight.data(), with_bias ? bias.data() : nullptr}, x.data(), y.data());
        for (std::int64_t i = 0; i < width; ++i) {
          const double expected =
              (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + (with_bias ? bias[i] : 0.0);
          ASSERT_NEAR(y[i], expected, 1e-5 * (1 + std::abs(expected))) << width << " " << i;
        }
      }
    }
  });
}

TEST(Activations, OfEverySizeAreTheFormulasInDoubles) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const auto formula = [](Activation activation, double x) {
    if (activation == Activation::kRelu) return x < 0 ? 0 : x;
    if (activation == Activation::kGelu) return x / 2 * std::erfc(-x / std::sqrt(2));
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1)) * (x + 0.044715 * x * x * x)));
  };
  ForEachTarget([&] {
    for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh}) {
      for (const std::int64_t n : {1, 7, 16, 33, 200}) {
        std::vector<float> x(n + 1, 4);
        for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i - n / 2) / 8;
        auto y = x;
        Activate(activation, n, y.data());
        for (std::int64_t i = 0; i < n; ++i) {
          ASSERT_NEAR(y[i], formula(activation, x[i]), 4e-7 * (1 + std::abs(x[i]))) << x[i];
        }
        ASSERT_EQ(y[n], 4);
      }
      std::vector<float> far{-1e30F, 1e30F, kNaN};
      Activate(activation, 3, far.data());
      EXPECT_EQ(far[0], 0);
      EXPECT_EQ(far[1], 1e30F);
      EXPECT_TRUE(std::isnan(far[2]));
    }
  });
}

}  // namespace
}  // namespace regard::nn
