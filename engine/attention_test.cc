// The contract in regard/attention.h: strides, sizes, dropout, threads, heads, gradients. Small inputs that
// have broken other attention code are among them.
#include "regard/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/kernels/reference.h"
#include "engine/testing/case.h"
#include "engine/testing/contract.h"

namespace regard::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
      // Close to the key: inside of every kernel.
      for (std::int64_t d = 0; d < spec.D; ++d) c.q.Element(d) = 0.9f * c.k.Element(d);
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

TEST(Contract, SharedBiasesAndChoicesHaveTheSameBitsOnAnyNumberOfThreads) {
  const std::array<std::array<std::int64_t, 4>, 5> shapes = {
      {{0, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}, {1, 0, 1, 0}, {0, 1, 0, 1}}};
  for (const auto& shape : shapes) {
    for (const Normalizer& normalizer : kNormalizers) {
      Spec spec{.L = 100, .S = 520, .D = 9, .E = 5, .normalizer = normalizer};
      spec.bias_shape = shape, spec.upstream_lse = true;
      const Case<float> one(spec);
      one.Run();
      for (int threads : {2, 3}) {
        Case<float> many(spec);
        many.options.threads = threads;
        many.Run();
        EXPECT_EQ(one.Bits(), many.Bits()) << spec.Text() << " on " << threads;
      }
    }
  }
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
