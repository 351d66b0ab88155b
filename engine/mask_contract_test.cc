// The contract in regard/attention.h: what is masked does not exist, and a query that sees no key gives 0.
// Small inputs that have broken other attention code are among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/kernels/reference.h"
#include "engine/testing/case.h"
#include "engine/testing/contract.h"
#include "regard/attention.h"

namespace regard::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(Contract, FullyMaskedRowIsZero) {
  for (const Normalizer& normalizer : kNormalizers) {
    for (TestScore score : kScores) {
      Spec spec{.B = 1, .H = 2, .L = 6, .S = 10, .D = 8, .score = score, .normalizer = normalizer};
      spec.upstream_lse = true;
      Case<float> without(spec), with(spec);
      without.Run();
      with.keep = Tensor<bool, 4>({1, 1, 6, 10}, true);
      for (std::int64_t j = 0; j < 10; ++j) with.keep(0, 0, 5, j) = false;
      with.options.mask.keep = Keep{with.keep.view()};
      for (std::int64_t h = 0; h < 2; ++h) with.q(0, h, 5, 0) = kNaN;  // nor does its query exist
      for (std::int64_t h = 0; h < 2; ++h) with.dout(0, h, 5, 0) = kNaN;
      with.Run();
      for (std::int64_t h = 0; h < 2; ++h) {
        EXPECT_THAT(Row(with.out, 0, h, 5), Each(0.0f));
        EXPECT_THAT(Row(with.weights, 0, h, 5), Each(0.0f));
        EXPECT_THAT(Row(with.dq, 0, h, 5), Each(0.0f));
        EXPECT_EQ(with.lse(0, h, 5), -kInf);
        if (!with.soft()) {
          EXPECT_EQ(with.index(0, h, 5), -1);
        }
        if (!with.soft()) {
          EXPECT_EQ(with.log_prob(0, h, 5), 0.0f);
        }
        for (std::int64_t i = 0; i < 5; ++i) {
          EXPECT_EQ(Row(with.out, 0, h, i), Row(without.out, 0, h, i));
          EXPECT_EQ(Row(with.weights, 0, h, i), Row(without.weights, 0, h, i));
          EXPECT_EQ(Row(with.dq, 0, h, i), Row(without.dq, 0, h, i));
        }
      }
      EXPECT_TRUE(AllResultsFinite(with));
    }
  }
}

TEST(Contract, LateRowsThatStartWithEmptyBlocksAreFinite) {
  Spec spec{.B = 1, .H = 1, .G = 1, .L = 640, .S = 640, .D = 4, .E = 4};
  Case<float> c(spec);
  c.options.mask.window = Window{9, 0, Corner::kTopLeft};
  c.Run();
  EXPECT_TRUE(AllResultsFinite(c));
  const auto right = ReferenceForward<double>(c.options, c.Inputs());
  for (std::int64_t n = 0; n < c.out.size(); ++n) {
    ASSERT_NEAR(c.out.Element(n), right.out[static_cast<std::size_t>(n)], 1e-6);
  }
}

TEST(Contract, OneRealKeyInABandWithLossOnTheFirstOutputHasFiniteGradients) {
  Spec spec{.B = 2, .H = 1, .G = 1, .L = 3, .S = 3, .want_weights = false};
  Case<float> c(spec);
  c.lengths = Tensor<std::int64_t, 2>({2, 1}, 3);
  c.lengths(1, 0) = 1;
  c.options.mask.lengths = Lengths{c.lengths.view()};
  c.options.mask.window = Window{1, 1, Corner::kTopLeft};
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t i = 1; i < 3; ++i) {
      for (std::int64_t e = 0; e < spec.E; ++e) c.dout(b, 0, i, e) = 0;
    }
  }
  c.Run();
  EXPECT_TRUE(AllResultsFinite(c));
  EXPECT_THAT(Row(c.dv, 1, 0, 0), ::testing::ElementsAreArray(Row(c.dout, 1, 0, 0)));  // its only key
  EXPECT_THAT(Row(c.out, 1, 0, 2), Each(0.0f));
}

// The results with `value` in key and value j of every head, and in its dweights, are those with 0 there.
void ExpectMaskedKeyIsNothing(const Case<float>& zero, const Case<float>& other, std::int64_t b,
                              std::int64_t j, float value) {
  for (const auto* c : {&zero, &other}) {
    const float x = c == &zero ? 0.0f : value;
    for (std::int64_t g = 0; g < c->spec.G; ++g) {
      for (std::int64_t d = 0; d < c->spec.D; ++d) c->k(b, g, j, d) = x;
      for (std::int64_t e = 0; e < c->spec.E; ++e) c->v(b, g, j, e) = x;
    }
    for (std::int64_t h = 0; h < c->spec.H; ++h) {
      for (std::int64_t i = 0; i < c->spec.L; ++i) c->dweights(b, h, i, j) = x;
    }
    c->Run();
  }
  EXPECT_TRUE(AllResultsFinite(other)) << value;
  EXPECT_EQ(zero.Bits(), other.Bits()) << value;
}

TEST(Contract, WhatIsMaskedDoesNotExist) {
  for (const Normalizer& normalizer : kNormalizers) {
    for (TestScore score : kScores) {
      for (float value : {kNaN, 1e10f, kInf, -kInf}) {
        Spec spec{.B = 1, .L = 2, .S = 3, .D = 4, .score = score, .normalizer = normalizer, .dropout = 0.2};
        if (value != kInf) spec.softcap = 2;
        Case<float> zero(spec), other(spec);
        for (Case<float>* c : {&zero, &other}) {
          c->keep = Tensor<bool, 4>({1, 1, 1, 3}, true);
          c->keep(0, 0, 0, 1) = false;
          c->options.mask.keep = Keep{c->keep.view()};
        }
        ExpectMaskedKeyIsNothing(zero, other, 0, 1, value);
      }
    }
  }
}

TEST(Contract, PaddingBeyondALengthDoesNotExist) {
  for (TestScore score : kScores) {
    for (std::int64_t padding = 1; padding < 3; ++padding) {
      Spec spec{.B = 2, .S = 3, .score = score};
      Case<float> zero(spec), other(spec);
      for (Case<float>* c : {&zero, &other}) {
        c->lengths = Tensor<std::int64_t, 2>({2, 1}, 3);
        c->lengths(0, 0) = 1;
        c->options.mask.lengths = Lengths{c->lengths.view()};
      }
      ExpectMaskedKeyIsNothing(zero, other, 0, padding, kNaN);
    }
  }
}

TEST(Contract, UnmaskedNaNShowsInItsRowsOnly) {
  for (const Normalizer& normalizer : kNormalizers) {
    Spec spec{.B = 1, .H = 1, .G = 1, .L = 3, .S = 200, .normalizer = normalizer};
    Case<float> c(spec);
    c.options.mask.causal = Causal{};  // query i sees keys 0 .. i
    c.k(0, 0, 1, 0) = kNaN;
    ASSERT_TRUE(c.Forward().ok());
    EXPECT_TRUE(std::isfinite(c.out(0, 0, 0, 0)));
    for (std::int64_t i = 1; i < 3; ++i) {
      EXPECT_TRUE(std::isnan(c.out(0, 0, i, 0))) << i;
      EXPECT_TRUE(std::isnan(c.lse(0, 0, i))) << i;
    }
    c.k(0, 0, 1, 0) = 0;
    c.q(0, 0, 2, 0) = kNaN;
    ASSERT_TRUE(c.Forward().ok());
    EXPECT_TRUE(std::isfinite(c.out(0, 0, 0, 0)) && std::isfinite(c.out(0, 0, 1, 0)));
    EXPECT_TRUE(std::isnan(c.out(0, 0, 2, 0)));
  }
}

// A weight of 0 does not hide what is not a number, however far away its key is.
TEST(Contract, FarKeysThatAreNotFiniteShow) {
  Spec spec{.B = 1, .H = 1, .G = 1, .L = 100, .S = 600, .D = 1, .E = 2, .score = TestScore::kGaussian};
  spec.drift = 1000;
  for (float spoilt : {kNaN, kInf}) {
    Case<float> c(spec);
    c.v(0, 0, 590, 0) = spoilt;
    ASSERT_TRUE(c.Forward().ok());
    EXPECT_TRUE(std::isnan(c.out(0, 0, 3, 0)));
    EXPECT_TRUE(std::isfinite(c.out(0, 0, 3, 1)));
  }
  Case<float> c(spec);
  c.k(0, 0, 590, 0) = kNaN;
  c.Run();
  EXPECT_TRUE(std::isnan(c.lse(0, 0, 3)));
  EXPECT_TRUE(std::isnan(c.dq(0, 0, 3, 0)));
}

TEST(Contract, AMaskedKeyIsNothingToARowOfNaN) {
  for (const Normalizer& normalizer : kNormalizers) {
    for (TestScore score : {TestScore::kScaledDot, TestScore::kGaussian, TestScore::kTricube}) {
      Spec spec{.B = 1, .H = 1, .G = 1, .L = 7, .score = score, .mask = TestMask::kExcludeSelf};
      spec.normalizer = normalizer;
      const Case<float> c(spec);
      c.q(0, 0, 2, 0) = kNaN;
      c.Run();
      EXPECT_TRUE(std::isnan(c.lse(0, 0, 2)));
      EXPECT_EQ(c.weights(0, 0, 2, 2), 0.0f);
      for (std::int64_t e = 0; e < spec.E; ++e) EXPECT_TRUE(std::isfinite(c.dv(0, 0, 2, e)));
      for (std::int64_t d = 0; d < spec.D; ++d) EXPECT_TRUE(std::isfinite(c.dk(0, 0, 2, d)));
    }
  }
}

TEST(Contract, ABiasOfMinusInfinityLeavesAnEmptyRow) {
  Spec spec{.B = 1, .L = 2, .bias_shape = {{1, 1, 0, 0}}};
  Case<float> c(spec);
  for (std::int64_t j = 0; j < spec.S; ++j) c.bias(0, 0, 1, j) = -kInf;
  c.Run();
  EXPECT_THAT(Row(c.out, 0, 0, 1), Each(0.0f));
  EXPECT_EQ(c.lse(0, 0, 1), -kInf);
  EXPECT_TRUE(AllResultsFinite(c));
}

TEST(Contract, CausalCornersSayWhereTheDiagonalStarts) {
  Spec spec{.B = 1, .H = 1, .G = 1, .L = 1, .S = 8};
  Case<float> c(spec);
  c.options.mask.causal = Causal{Corner::kTopLeft};
  ASSERT_TRUE(c.Forward().ok());
  EXPECT_THAT(Row(c.weights, 0, 0, 0), ElementsAre(1, 0, 0, 0, 0, 0, 0, 0));
  c.options.mask.causal = Causal{Corner::kBottomRight};
  ASSERT_TRUE(c.Forward().ok());
  EXPECT_THAT(Row(c.weights, 0, 0, 0), Each(::testing::Gt(0.0f)));
}

TEST(Contract, MoreQueriesThanKeysBottomRightLeavesTheFirstRowsEmpty) {
  Spec spec{.B = 1, .H = 1, .G = 1, .L = 5, .S = 2};
  Case<float> c(spec);
  c.options.mask.causal = Causal{Corner::kBottomRight};
  c.Run();
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_THAT(Row(c.out, 0, 0, i), Each(0.0f));
  EXPECT_THAT(Row(c.weights, 0, 0, 3), ElementsAre(1, 0));
  EXPECT_THAT(Row(c.weights, 0, 0, 4), Each(::testing::Gt(0.0f)));
  EXPECT_TRUE(AllResultsFinite(c));
}

TEST(Contract, AMaskWhoseLastSizeIsOneIsBroadcast) {
  Spec spec{.B = 1, .L = 3, .S = 300};
  Case<float> narrow(spec), wide(spec);
  narrow.keep = Tensor<bool, 4>({1, 1, 3, 1}, true);
  wide.keep = Tensor<bool, 4>({1, 1, 3, 300}, true);
  narrow.keep(0, 0, 1, 0) = false;
  for (std::int64_t j = 0; j < 300; ++j) wide.keep(0, 0, 1, j) = false;
  for (Case<float>* c : {&narrow, &wide}) {
    c->options.mask.keep = Keep{c->keep.view()};
    c->Run();
  }
  EXPECT_EQ(narrow.Bits(), wide.Bits());
}

TEST(Contract, LargeQueriesAndKeysAreFiniteUnderAnyMask) {
  for (int mask = 0; mask <= static_cast<int>(TestMask::kMany); ++mask) {
    Spec spec{.L = 20, .S = 20, .D = 4, .mask = static_cast<TestMask>(mask), .scale = 500};
    const Case<float> c(spec);
    c.Run();
    EXPECT_TRUE(AllResultsFinite(c)) << spec.Text();
  }
}

TEST(Contract, SoftcapActsBeforeTheMask) {
  Spec spec{.mask = TestMask::kKeep, .softcap = 0.5};
  const Case<float> c(spec);
  c.Run();
  std::int64_t masked = 0;
  for (std::int64_t b = 0; b < spec.B; ++b)
    for (std::int64_t h = 0; h < spec.H; ++h)
      for (std::int64_t i = 0; i < spec.L; ++i)
        for (std::int64_t j = 0; j < spec.S; ++j) {
          if (c.keep(b, h, i, j)) continue;
          ++masked;
          EXPECT_EQ(c.weights(b, h, i, j), 0.0f);
        }
  EXPECT_GT(masked, 0);
}

TEST(Contract, AWindowActsAlone) {
  Spec spec{.B = 1, .H = 1, .G = 1, .L = 10, .S = 10};
  Case<float> c(spec), causal(spec), wide(spec);
  c.options.mask.window = Window{3, 0, Corner::kTopLeft};
  ASSERT_TRUE(c.Forward().ok());
  const auto row = Row(c.weights, 0, 0, 6);
  for (std::int64_t j = 0; j < 10; ++j)
    EXPECT_EQ(row[static_cast<std::size_t>(j)] > 0, j >= 3 && j <= 6) << j;
  causal.options.mask.causal = Causal{};
  wide.options.mask.window = Window{9, 0, Corner::kTopLeft};
  causal.Run(), wide.Run();
  EXPECT_EQ(causal.Bits(), wide.Bits());
}

TEST(Contract, LengthsOfABatchOrOfAQuery) {
  Spec spec{.B = 2, .H = 1, .G = 1, .L = 2, .S = 4};
  Case<float> c(spec);
  c.lengths = Tensor<std::int64_t, 2>({2, 2}, 4);
  c.lengths(0, 0) = 1, c.lengths(0, 1) = 3, c.lengths(1, 0) = 2;
  c.options.mask.lengths = Lengths{c.lengths.view()};
  ASSERT_TRUE(c.Forward().ok());
  EXPECT_THAT(Row(c.weights, 0, 0, 0), ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(Row(c.weights, 0, 0, 1)[3], 0.0f);
  EXPECT_GT(Row(c.weights, 0, 0, 1)[2], 0.0f);
  EXPECT_GT(Row(c.weights, 1, 0, 1)[3], 0.0f);
  c.lengths = Tensor<std::int64_t, 2>({2, 1}, 0);
  c.options.mask.lengths = Lengths{c.lengths.view()};
  c.Run();
  EXPECT_THAT(c.out.Values(), Each(0.0f));
  EXPECT_THAT(c.dv.Values(), Each(0.0f));
}

}  // namespace
}  // namespace regard::engine
