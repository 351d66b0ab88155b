// Compact kernels as scores: their edge, what is outside, and the softmax of log K as Nadaraya and Watson's
// mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/kernels/reference.h"
#include "engine/testing/case.h"
#include "engine/testing/contract.h"
#include "engine/testing/sizes.h"

namespace regard::engine {
namespace {

using ::testing::Each;

constexpr TestScore kCompact[] = {TestScore::kBoxcar, TestScore::kTriangular, TestScore::kEpanechnikov,
                                  TestScore::kTricube};

double Kernel(TestScore score, double u) {
  if (score == TestScore::kBoxcar) return u <= 1 ? 1 : 0;
  const double inside = std::max(0.0, 1 - u), cube = std::max(0.0, 1 - u * u * u);
  if (score == TestScore::kTriangular) return inside;
  return score == TestScore::kEpanechnikov ? std::max(0.0, 1 - u * u) : cube * cube * cube;
}

// One head, queries and keys in one dimension, precision 1; 0 where nothing else is set.
Case<float> Line(TestScore score, std::int64_t queries, std::int64_t keys) {
  Spec spec{.B = 1, .H = 1, .G = 1, .L = queries, .S = keys, .D = 1, .E = 1, .score = score};
  spec.upstream_lse = true;
  Case<float> c(spec);
  c.precision(0) = 1;
  for (std::int64_t i = 0; i < queries; ++i) c.q(0, 0, i, 0) = 0;
  for (std::int64_t j = 0; j < keys; ++j) c.k(0, 0, j, 0) = 0;
  return c;
}

TEST(Compact, LseOfOneKeyIsLogK) {
  for (TestScore score : kCompact) {
    const Case<float> c = Line(score, 2300, 1);
    for (std::int64_t i = 0; i < 2300; ++i) c.q(0, 0, i, 0) = (static_cast<float>(i) - 1150) * 9.7e-4f;
    ASSERT_TRUE(c.Forward().ok());
    for (std::int64_t i = 0; i < 2300; ++i) {
      const double right = Kernel(score, std::abs(static_cast<double>(c.q(0, 0, i, 0))));
      EXPECT_NEAR(std::exp(static_cast<double>(c.lse(0, 0, i))), right, 6e-7) << i;
      EXPECT_EQ(c.weights(0, 0, i, 0), right > 0 ? 1.0f : 0.0f) << i;
    }
  }
}

// Close to the edge a rounding of u becomes as large a one of log K as one likes, in the formula too; so the
// errors are compared over many calls.
TEST(Compact, ErrsNoMoreThanTheFormulaInTheSameType) {
  for (TestScore score : kCompact) {
    std::vector<double> kernel_errors, formula_errors;
    for (std::uint64_t seed = 1; seed <= 200 / kEveryNth; ++seed) {
      Spec spec{.B = 1, .H = 1, .G = 1, .L = 8, .S = 20, .D = 3, .E = 2, .score = score, .seed = seed};
      const Case<float> c(spec);
      c.Run();
      const auto right = ReferenceBackward<double>(c.options, c.Inputs(), c.Upstream());
      const auto formula = ReferenceBackward<float>(c.options, c.Inputs(), c.Upstream());
      const auto add = [&](const auto& kernel, const auto& plain, const auto& exact) {
        double kernel_error = 0, formula_error = 0;
        for (std::size_t n = 0; n < exact.size(); ++n) {
          kernel_error = std::max(kernel_error, std::abs(static_cast<double>(kernel[n]) - exact[n]));
          formula_error = std::max(formula_error, std::abs(static_cast<double>(plain[n]) - exact[n]));
        }
        kernel_errors.push_back(kernel_error), formula_errors.push_back(formula_error);
      };
      add(c.dq.Values(), formula.dq, right.dq);
      add(c.dk.Values(), formula.dk, right.dk);
      add(c.dv.Values(), formula.dv, right.dv);
      add(c.dprecision.Values(), formula.dprecision, right.dprecision);
    }
    std::sort(kernel_errors.begin(), kernel_errors.end());
    std::sort(formula_errors.begin(), formula_errors.end());
    for (double share : {0.25, 0.5, 0.75, 0.9}) {
      const auto at = static_cast<std::size_t>(share * static_cast<double>(kernel_errors.size()));
      EXPECT_LE(kernel_errors[at], 1.25 * formula_errors[at]) << static_cast<int>(score) << " " << share;
    }
  }
}

TEST(Compact, TheSoftmaxIsTheMeanThatTheKernelWeighs) {
  for (TestScore score : kCompact) {
    Spec spec{.B = 1, .H = 1, .G = 1, .L = 40, .S = 150, .D = 2, .E = 1, .score = score};
    const Case<float> c(spec);
    ASSERT_TRUE(c.Forward().ok());
    const double a = c.precision(0);
    for (std::int64_t i = 0; i < spec.L; ++i) {
      double sum = 0, weighed = 0;
      for (std::int64_t j = 0; j < spec.S; ++j) {
        const double z0 = a * (c.q(0, 0, i, 0) - c.k(0, 0, j, 0)),
                     z1 = a * (c.q(0, 0, i, 1) - c.k(0, 0, j, 1));
        const double k = Kernel(score, std::sqrt(z0 * z0 + z1 * z1));
        sum += k, weighed += k * c.v(0, 0, j, 0);
      }
      ASSERT_GT(sum, 0);
      EXPECT_NEAR(c.out(0, 0, i, 0), weighed / sum, 1e-6) << i;
    }
  }
}

TEST(Compact, TheEdgeBelongsToTheBoxcarAlone) {
  for (TestScore score : kCompact) {
    const Case<float> c = Line(score, 3, 1);
    c.q(0, 0, 0, 0) = 1;
    c.q(0, 0, 1, 0) = std::nextafter(1.0f, 2.0f);
    c.q(0, 0, 2, 0) = std::nextafter(1.0f, 0.0f);
    c.Run();
    const bool boxcar = score == TestScore::kBoxcar;
    EXPECT_EQ(c.weights(0, 0, 0, 0), boxcar ? 1.0f : 0.0f);
    EXPECT_EQ(c.lse(0, 0, 0), boxcar ? 0.0f : -kInf);
    EXPECT_EQ(c.weights(0, 0, 1, 0), 0.0f);
    EXPECT_EQ(c.weights(0, 0, 2, 0), 1.0f);
  }
}

TEST(Compact, AQueryWithNoKeyInsideIsZero) {
  for (TestScore score : kCompact) {
    for (const Normalizer& normalizer : kNormalizers) {
      Spec spec{.B = 1, .H = 1, .G = 1, .score = score, .normalizer = normalizer, .upstream_lse = true};
      const Case<float> c(spec);
      for (std::int64_t d = 0; d < spec.D; ++d) c.q(0, 0, 2, d) = 1000;
      c.Run();
      EXPECT_THAT(Row(c.out, 0, 0, 2), Each(0.0f));
      EXPECT_THAT(Row(c.weights, 0, 0, 2), Each(0.0f));
      EXPECT_THAT(Row(c.dq, 0, 0, 2), Each(0.0f));
      EXPECT_EQ(c.lse(0, 0, 2), -kInf);
      if (!c.soft()) {
        EXPECT_EQ(c.index(0, 0, 2), -1);
      }
      EXPECT_TRUE(AllResultsFinite(c));
    }
  }
}

// Whatever an outside key and its value hold, all but NaN coordinates leave it outside.
TEST(Compact, WhatIsOutsideDoesNotExist) {
  for (TestScore score : kCompact) {
    for (const Normalizer& normalizer : kNormalizers) {
      Spec spec{.B = 1, .H = 2, .G = 1, .S = 140, .score = score, .normalizer = normalizer, .dropout = 0.2};
      const Case<float> plain(spec), other(spec);
      const auto put = [&](const Case<float>& c, float key, float value) {
        for (std::int64_t d = 0; d < spec.D; ++d) c.k(0, 0, 130, d) = key;
        for (std::int64_t e = 0; e < spec.E; ++e) c.v(0, 0, 130, e) = value;
        for (std::int64_t h = 0; h < spec.H; ++h) {
          for (std::int64_t i = 0; i < spec.L; ++i) c.dweights(0, h, i, 130) = value;
        }
        c.Run();
      };
      put(plain, 1000, 0);
      EXPECT_TRUE(AllResultsFinite(plain));
      for (float key : {-50.0f, 1e30f, kInf, -kInf}) {
        for (float value : {kNaN, kInf}) {
          put(other, key, value);
          EXPECT_EQ(plain.Bits(), other.Bits()) << key << " " << value;
        }
      }
    }
  }
}

// Nor does what is added to its score, or taken of it; in one dimension, sorted, most of a row is outside.
TEST(Compact, NothingAfterTheScoreBringsTheOutsideBack) {
  for (TestScore score : kCompact) {
    for (const Normalizer& normalizer : kNormalizers) {
      Spec spec{.B = 1, .H = 2, .G = 1, .L = 40, .S = 700, .D = 1, .E = 3, .score = score};
      spec.softcap = 0.5;
      spec.alibi = true;
      spec.bias_shape = {0, 0, 0, 0};
      spec.normalizer = normalizer;
      const Case<float> plain(spec), other(spec);
      const auto run = [&](const Case<float>& c, float bias) {
        c.precision(0) = 1;
        for (std::int64_t j = 0; j < spec.S; ++j) c.k(0, 0, j, 0) = 0.25f * static_cast<float>(j);
        for (std::int64_t h = 0; h < spec.H; ++h) {
          for (std::int64_t i = 0; i < spec.L; ++i) {
            c.q(0, h, i, 0) = 4.1f * static_cast<float>(i) + 0.3f;
            for (std::int64_t j = 0; j < spec.S; ++j) {
              if (std::abs(c.q(0, h, i, 0) - c.k(0, 0, j, 0)) > 1.01f) c.bias(0, h, i, j) = bias;
            }
          }
        }
        c.Run();
      };
      run(plain, 0);
      EXPECT_TRUE(AllResultsFinite(plain));
      EXPECT_GT(plain.lse(0, 0, 0), -kInf);
      EXPECT_EQ(plain.weights(0, 0, 0, 300), 0.0f);
      for (float bias : {kNaN, kInf}) {
        run(other, bias);
        EXPECT_EQ(plain.Bits(), other.Bits()) << bias;
      }
    }
  }
}

// The difference of two numbers may be infinite; of what is outside it is not looked at.
TEST(Compact, NumbersOfAnySizeAreOutsideOrInside) {
  for (TestScore score : kCompact) {
    const Case<float> c = Line(score, 2, 3);
    c.q(0, 0, 1, 0) = -3e38f;
    c.k(0, 0, 1, 0) = 3e38f;
    c.k(0, 0, 2, 0) = -3e38f;
    c.Run();
    EXPECT_TRUE(AllResultsFinite(c));
    EXPECT_THAT(Row(c.weights, 0, 0, 0), ::testing::ElementsAre(1.0f, 0.0f, 0.0f));
    EXPECT_THAT(Row(c.weights, 0, 0, 1), ::testing::ElementsAre(0.0f, 0.0f, 1.0f));
  }
}

TEST(Compact, NaNShowsAndLeavesTheOutsideAtZero) {
  for (TestScore score : kCompact) {
    const Case<float> c = Line(score, 2, 3);
    c.k(0, 0, 1, 0) = kNaN;
    c.k(0, 0, 2, 0) = 5;
    c.Run();
    for (std::int64_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(std::isnan(c.out(0, 0, i, 0)));
      EXPECT_TRUE(std::isnan(c.lse(0, 0, i)));
      EXPECT_TRUE(std::isnan(c.dq(0, 0, i, 0)));
      EXPECT_TRUE(std::isnan(c.weights(0, 0, i, 0)));
      EXPECT_EQ(c.weights(0, 0, i, 2), 0.0f);
    }
    EXPECT_EQ(c.dv(0, 0, 2, 0), 0.0f);
    c.k(0, 0, 1, 0) = 0;
    c.q(0, 0, 1, 0) = kNaN;
    c.Run();
    EXPECT_TRUE(std::isfinite(c.out(0, 0, 0, 0)));
    EXPECT_TRUE(std::isnan(c.out(0, 0, 1, 0)));
  }
}

TEST(Compact, AtItsKeyAQueryHasNoGradient) {
  for (TestScore score : kCompact) {
    const Case<float> c = Line(score, 1, 2);  // both keys where the query is
    c.Run();
    EXPECT_EQ(c.weights(0, 0, 0, 0), 0.5f);
    EXPECT_EQ(c.dq(0, 0, 0, 0), 0.0f);
    EXPECT_THAT(c.dk.Values(), Each(0.0f));
    EXPECT_EQ(c.dprecision(0), 0.0f);
  }
}

// d lse / dq = K'(u) / sum K: where K is all but 0, the weight is and the derivative of its logarithm is not.
TEST(Compact, TheLastNumberBeforeTheEdgeHasAFiniteGradient) {
  const float edge = std::nextafter(1.0f, 0.0f);
  for (TestScore score : kCompact) {
    const Case<float> c = Line(score, 1, 2);  // one key where the query is, one at the edge
    c.k(0, 0, 1, 0) = edge;
    c.dlse(0, 0, 0) = 1;
    c.dout(0, 0, 0, 0) = 0;
    c.dweights(0, 0, 0, 0) = c.dweights(0, 0, 0, 1) = 0;
    c.Run();
    EXPECT_TRUE(AllResultsFinite(c));
    const double slope = score == TestScore::kTriangular ? -1 : score == TestScore::kEpanechnikov ? -2 : 0;
    EXPECT_NEAR(c.dk(0, 0, 1, 0), slope, 1e-5);
    EXPECT_NEAR(c.dq(0, 0, 0, 0), -slope, 1e-5);
    EXPECT_NEAR(c.dprecision(0), slope, 1e-5);
    const Case<float> alone = Line(score, 1, 1);
    alone.k(0, 0, 0, 0) = edge;
    alone.Run();
    EXPECT_TRUE(AllResultsFinite(alone));
    EXPECT_EQ(alone.weights(0, 0, 0, 0), 1.0f);
  }
}

}  // namespace
}  // namespace regard::engine
