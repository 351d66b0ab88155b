#include "nn/row_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "nn/target_testing.h"

namespace regard::nn {
namespace {

constexpr double kEps = std::numeric_limits<float>::epsilon();

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

}  // namespace
}  // namespace regard::nn
