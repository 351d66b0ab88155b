// The contract in regard/attention.h, line by line, and small inputs that have broken other attention code.
#include "regard/attention.h"

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

namespace regard::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename Tensor>
bool AllFinite(const Tensor& t) {
  const auto values = t.Values();
  return std::all_of(values.begin(), values.end(), [](auto x) { return std::isfinite(x); });
}

bool AllResultsFinite(const Case<float>& c) {
  return AllFinite(c.out) && AllFinite(c.dq) && AllFinite(c.dk) && AllFinite(c.dv) && AllFinite(c.dbias) &&
         AllFinite(c.dw) && AllFinite(c.dprecision);
}

template <typename T>
std::vector<T> Row(const Tensor<T, 4>& t, std::int64_t b, std::int64_t h, std::int64_t i) {
  std::vector<T> row;
  for (std::int64_t x = 0; x < t.shape()[3]; ++x) row.push_back(t(b, h, i, x));
  return row;
}

const std::vector<Normalizer> kNormalizers = {Softmax{}, Argmax{}, Sample{3}};
const std::vector<TestScore> kScores = {TestScore::kScaledDot, TestScore::kCosine, TestScore::kAdditive,
                                        TestScore::kGaussian};

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

TEST(Contract, AnyStridesGiveTheBitsOfContiguousCopies) {
  for (TestScore score : kScores) {
    for (TestMask mask : {TestMask::kNone, TestMask::kMany}) {
      Spec spec{.L = 35, .S = 140, .D = 17, .E = 5, .score = score, .mask = mask, .alibi = true};
      spec.bias_shape = {{0, 1, 0, 0}};
      const Case<float> contiguous(spec);
      contiguous.Run();
      for (Layout layout : kLayouts) {
        spec.layout = layout;
        const Case<float> other(spec);
        other.Run();
        EXPECT_EQ(contiguous.Bits(), other.Bits()) << spec.Text();
      }
    }
  }
}

TEST(Contract, ExpandedTensorsGiveTheBitsOfTheirCopies) {
  const auto expand = [](auto tensor, std::size_t dimension) {
    auto view = tensor.view();
    view.strides[dimension] = 0;
    return view;
  };
  for (std::size_t dimension = 0; dimension < 4; ++dimension) {
    Spec spec;
    Case<float> c(spec);
    AttentionInputs<float> in = {expand(c.q, dimension), expand(c.k, dimension), expand(c.v, dimension)};
    AttentionUpstream<float> up = c.Upstream();
    up.dout = expand(c.dout, dimension);
    ASSERT_TRUE(AttentionForward(c.options, in, c.Outputs()).ok());
    ASSERT_TRUE(AttentionBackward(c.options, in, up, c.Gradients()).ok());
    Case<float> copy(spec);
    const auto fill = [](const auto& to, const auto& from) {
      for (std::int64_t a = 0; a < from.shape[0]; ++a)
        for (std::int64_t b = 0; b < from.shape[1]; ++b)
          for (std::int64_t i = 0; i < from.shape[2]; ++i)
            for (std::int64_t x = 0; x < from.shape[3]; ++x) to(a, b, i, x) = from(a, b, i, x);
    };
    fill(copy.q, in.q), fill(copy.k, in.k), fill(copy.v, in.v), fill(copy.dout, *up.dout);
    copy.Run();
    EXPECT_EQ(c.Bits(), copy.Bits()) << dimension;
  }
}

TEST(Contract, SizesOfZeroGiveEmptyOrZeroResults) {
  for (int which = 0; which < 7; ++which) {
    for (TestScore score : kScores) {
      for (const Normalizer& normalizer : kNormalizers) {
        Spec spec{.L = 4, .S = 3, .score = score, .normalizer = normalizer};
        spec.bias_shape = {{1, 0, 0, 0}};
        std::int64_t* const sizes[] = {&spec.B, &spec.H, &spec.G, &spec.L, &spec.S, &spec.D, &spec.E};
        *sizes[which] = 0;
        if (spec.H == 0) spec.G = 0;  // no heads at all
        Case<float> c(spec);
        const Status status = c.Forward();
        if (spec.G == 0 && spec.H > 0) {
          EXPECT_THAT(status.message(), HasSubstr("k has 0 heads"));
          continue;
        }
        c.Run();
        if (spec.S == 0 || spec.L == 0 || spec.B == 0 || spec.H == 0) {
          EXPECT_THAT(c.out.Values(), Each(0.0f));
          EXPECT_THAT(c.dq.Values(), Each(0.0f));
          EXPECT_THAT(c.dk.Values(), Each(0.0f));
          EXPECT_THAT(c.dv.Values(), Each(0.0f));
          EXPECT_THAT(c.dbias.Values(), Each(0.0f));
          EXPECT_THAT(c.dw.Values(), Each(0.0f));
        }
        if (spec.S == 0) {
          EXPECT_THAT(c.lse.Values(), Each(-kInf));
        }
      }
    }
  }
}

TEST(Contract, NoQueriesAndHeadsThatDoNotDivideIsAnError) {
  Spec spec{.B = 7, .H = 9, .G = 7, .L = 0, .S = 0, .D = 7};
  const Case<float> c(spec);
  EXPECT_THAT(c.Forward().message(), HasSubstr("k has 7 heads, which does not divide q's 9 heads"));
  EXPECT_THAT(c.Backward().message(), HasSubstr("k has 7 heads, which does not divide q's 9 heads"));
}

TEST(Contract, OneKeyHasNoGradientForItsQuery) {
  for (TestScore score : kScores) {
    for (double dropout : {0.0, 0.3}) {
      Spec spec{.B = 1, .H = 1, .G = 1, .L = 1, .S = 1, .D = 7, .score = score, .dropout = dropout};
      Case<float> c(spec);
      c.Run();
      EXPECT_THAT(c.dq.Values(), Each(0.0f));
      if (dropout == 0) {
        EXPECT_EQ(c.dv.Values(), c.dout.Values());
      }
    }
  }
}

TEST(Contract, ScoresFarBelowZeroStillHaveASoftmax) {
  Spec spec{.B = 1, .H = 1, .G = 1, .L = 1, .S = 4, .score = TestScore::kDot, .bias_shape = {{1, 1, 1, 0}}};
  Case<float> c(spec);
  c.options.score = Dot{0.0};
  for (std::int64_t j = 0; j < 4; ++j) c.bias(0, 0, 0, j) = -50000.0f - static_cast<float>(j);
  c.Run();
  const double z = 1 + std::exp(-1.0) + std::exp(-2.0) + std::exp(-3.0);
  for (std::int64_t j = 0; j < 4; ++j) {
    EXPECT_NEAR(c.weights(0, 0, 0, j), std::exp(-static_cast<double>(j)) / z, 1e-7);
  }
  EXPECT_NEAR(c.lse(0, 0, 0), -50000 + std::log(z), 0.004);  // the last place of 50,000
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

TEST(Contract, DropoutOfZeroHasNoEffect) {
  Spec spec;
  Case<float> plain(spec), seeded(spec);
  seeded.options.dropout = Dropout{0.0, 12345};
  plain.Run(), seeded.Run();
  EXPECT_EQ(plain.Bits(), seeded.Bits());
}

TEST(Contract, WeightsAreThoseBeforeDropout) {
  Spec spec{.L = 40, .S = 150, .dropout = 0.5};
  Spec plain_spec = spec;
  plain_spec.dropout = 0;
  const Case<float> dropped(spec), plain(plain_spec);
  dropped.Run(), plain.Run();
  EXPECT_EQ(dropped.weights.Values(), plain.weights.Values());
  EXPECT_NE(dropped.out.Values(), plain.out.Values());
  for (std::int64_t i = 0; i < spec.L; ++i) {
    const auto row = Row(dropped.weights, 1, 2, i);
    double sum = 0;
    for (float p : row) sum += static_cast<double>(p);
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
}

TEST(Contract, DropoutIsAPureFunctionOfSeedAndPlace) {
  // The same (b, h, i, j) in calls of other sizes: the first two queries of seven against the first keys.
  Spec large{.L = 70, .S = 140, .mask = TestMask::kNone, .dropout = 0.5, .want_weights = false};
  Case<float> c(large);
  for (std::int64_t n = 0; n < c.q.size(); ++n) c.q.Element(n) = 0;  // all weights are equal
  for (std::int64_t n = 0; n < c.v.size(); ++n) c.v.Element(n) = 0;
  c.v(1, 0, 100, 0) = 140;  // out is now the dropout scale of key 100
  ASSERT_TRUE(c.Forward().ok());
  AttentionInputs<float> in = c.Inputs();
  Tensor<float, 4> out({2, 4, 3, 3});
  in.q.shape[2] = 3;
  ASSERT_TRUE(AttentionForward(c.options, in, {out.view(), {}, {}, {}, {}}).ok());
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < 70; ++i) {
    const float scale = c.out(1, 1, i, 0);
    EXPECT_TRUE(std::abs(scale) < 1e-3f || std::abs(scale - 2) < 1e-3f) << scale;
    kept += scale > 1;
    if (i < 3) {
      EXPECT_EQ(scale, out(1, 1, i, 0));
    }
  }
  EXPECT_GT(kept, 15);
  EXPECT_LT(kept, 55);
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

TEST(Contract, GroupedHeadsShareAKeyHead) {
  Spec spec{.H = 3, .G = 2};
  EXPECT_THAT(Case<float>(spec).Forward().message(),
              HasSubstr("k has 2 heads, which does not divide q's 3 heads"));
  spec = Spec{.B = 1, .H = 8, .G = 2};
  Case<float> c(spec);
  for (std::int64_t n = 0; n < c.v.size(); ++n) c.v.Element(n) = n < c.v.size() / 2 ? 1.0f : 2.0f;
  ASSERT_TRUE(c.Forward().ok());
  for (std::int64_t h = 0; h < 8; ++h) EXPECT_NEAR(c.out(0, h, 0, 0), h < 4 ? 1.0f : 2.0f, 1e-6) << h;
}

TEST(Contract, OnlyTheBiasNeedsAGradient) {
  Spec spec{.bias_shape = {{1, 0, 1, 0}}, .upstream_lse = true};
  const Case<float> all(spec), alone(spec);
  all.Run();
  ASSERT_TRUE(alone.Forward().ok());
  AttentionGradients<float> gradients;
  gradients.dbias = alone.dbias.view();
  ASSERT_TRUE(AttentionBackward(alone.options, alone.Inputs(), alone.Upstream(), gradients).ok());
  EXPECT_EQ(alone.dbias.Values(), all.dbias.Values());
  EXPECT_EQ(alone.dbias.shape(), alone.bias.shape());
  EXPECT_THAT(alone.dq.Values(), Each(77.0f));  // the mark of what is not written
}

TEST(Contract, EachGradientIsTheSameAloneAndTogether) {
  for (std::int64_t S : {20, 200}) {
    Spec spec{.S = S, .score = TestScore::kAdditive, .mask = TestMask::kLengths, .dropout = 0.3};
    const Case<float> all(spec);
    all.Run();
    const auto alone = [&](auto member, const auto& tensor) {
      AttentionGradients<float> gradients;
      gradients.*member = tensor.view();
      ASSERT_TRUE(AttentionBackward(all.options, all.Inputs(), all.Upstream(), gradients).ok());
    };
    const auto dq = all.dq.Copy(), dk = all.dk.Copy(), dv = all.dv.Copy();
    alone(&AttentionGradients<float>::dq, all.dq);
    alone(&AttentionGradients<float>::dk, all.dk);
    alone(&AttentionGradients<float>::dv, all.dv);
    EXPECT_EQ(all.dq.Values(), dq.Values());
    EXPECT_EQ(all.dk.Values(), dk.Values());
    EXPECT_EQ(all.dv.Values(), dv.Values());
  }
}

TEST(Contract, AccumulateAdds) {
  for (TestScore score : {TestScore::kAdditive, TestScore::kGaussian, TestScore::kGaussianPerDimension}) {
    Spec spec{.score = score, .bias_shape = {{1, 0, 1, 0}}, .upstream_lse = true};
    const Case<float> c(spec), added(spec);
    c.Run();
    ASSERT_TRUE(added.Forward().ok());
    AttentionGradients<float> gradients = added.Gradients();
    gradients.accumulate = true;
    ASSERT_TRUE(AttentionBackward(added.options, added.Inputs(), added.Upstream(), gradients).ok());
    const auto check = [](const auto& sum, const auto& plain) {
      for (std::int64_t n = 0; n < plain.size(); ++n)
        EXPECT_NEAR(sum.Element(n), 77 + plain.Element(n), 1e-5);
    };
    check(added.dq, c.dq), check(added.dk, c.dk), check(added.dv, c.dv), check(added.dbias, c.dbias);
    check(added.dw, c.dw), check(added.dprecision, c.dprecision);
  }
}

TEST(Contract, TheSameBitsOnAnyNumberOfThreads) {
  for (TestScore score : {TestScore::kAdditive, TestScore::kGaussian, TestScore::kScaledDot}) {
    Spec spec{
        .B = 3, .L = 70, .S = 300, .D = 33, .E = 20, .score = score, .mask = TestMask::kCausalBottomRight};
    spec.bias_shape = {{1, 0, 1, 0}};
    spec.dropout = 0.2;
    Case<float> one(spec);
    one.Run();
    for (int threads : {2, 3, 0}) {
      Case<float> many(spec);
      many.options.threads = threads;
      many.Run();
      EXPECT_EQ(one.Bits(), many.Bits()) << threads;
    }
    Case<float> backwards(spec);
    backwards.options.threads = 2;
    std::int64_t calls = 0;
    backwards.options.parallel_for = [&](std::int64_t n, const std::function<void(std::int64_t)>& task) {
      ++calls;
      while (n > 0) task(--n);
    };
    backwards.Run();
    EXPECT_EQ(one.Bits(), backwards.Bits());
    EXPECT_GT(calls, 1);
  }
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

TEST(Contract, EqualKeysAverageTheirValues) {
  // Additive or dot attention over ones: values 0..39 as 10 x 4, lengths 2 and 6.
  for (TestScore score : {TestScore::kAdditive, TestScore::kDot}) {
    Spec spec{.B = 2, .H = 1, .G = 1, .L = 1, .S = 10, .D = 2, .E = 4, .score = score};
    Case<float> c(spec);
    for (std::int64_t n = 0; n < c.k.size(); ++n) c.k.Element(n) = 1;
    for (std::int64_t n = 0; n < c.v.size(); ++n) c.v.Element(n) = static_cast<float>(n % 40);
    c.lengths = Tensor<std::int64_t, 2>({2, 1}, 2);
    c.lengths(1, 0) = 6;
    c.options.mask.lengths = Lengths{c.lengths.view()};
    ASSERT_TRUE(c.Forward().ok());
    EXPECT_THAT(Row(c.out, 0, 0, 0), ElementsAre(2, 3, 4, 5));
    for (int e = 0; e < 4; ++e) EXPECT_NEAR(c.out(1, 0, 0, e), 10 + e, 1e-5);
  }
}

TEST(Contract, SampleDrawsFromTheSoftmax) {
  Spec spec{.B = 1, .H = 1, .G = 1, .L = 4000, .S = 4, .bias_shape = {{1, 1, 1, 0}}, .want_weights = false};
  spec.normalizer = Sample{99};
  Case<float> c(spec);
  c.options.score = Dot{0.0};
  ASSERT_TRUE(c.Forward().ok());
  double z = 0;
  for (std::int64_t j = 0; j < 4; ++j) z += std::exp(static_cast<double>(c.bias(0, 0, 0, j)));
  std::vector<double> drawn(4, 0);
  for (std::int64_t i = 0; i < 4000; ++i) drawn[static_cast<std::size_t>(c.index(0, 0, i))] += 1.0 / 4000;
  for (std::int64_t j = 0; j < 4; ++j) {
    const double p = std::exp(static_cast<double>(c.bias(0, 0, 0, j))) / z;
    EXPECT_NEAR(drawn[static_cast<std::size_t>(j)], p, 4 * std::sqrt(p * (1 - p) / 4000)) << j;
  }
}

}  // namespace
}  // namespace regard::engine
