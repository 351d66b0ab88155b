// Scores of the caller's own, as regard/custom.h has them: against the formula in float64 and finite
// differences, and by the contract.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/testing/case.h"
#include "engine/testing/contract.h"
#include "engine/testing/derivative.h"
#include "engine/testing/sizes.h"
#include "engine/testing/targets.h"
#include "regard/attention.h"
#include "regard/custom.h"

namespace regard::engine {
namespace {

// -w |q - k|, which has a derivative everywhere but where q is k.
struct Manhattan {
  auto operator()(auto q, auto k, auto w) const { return -w * Abs(q - k); }
};

class CustomScoreOn : public OnTarget {};
REGARD_ON_EVERY_TARGET(CustomScoreOn);

constexpr TestScore kOwn[] = {TestScore::kOwnAdditive, TestScore::kOwnDot};

TEST_P(CustomScoreOn, AScoreIsThatOfItsFormulaInFloat64) {
  std::uint64_t seed = 0;
  for (TestScore score : kOwn) {
    for (int mask = 0; mask <= static_cast<int>(TestMask::kMany); ++mask) {
      for (const Normalizer& normalizer : kNormalizers) {
        Spec spec{.L = 7, .S = 270, .score = score, .mask = static_cast<TestMask>(mask)};
        spec.B = 1, spec.normalizer = normalizer, spec.upstream_lse = true;
        spec.seed = ++seed;
        if (seed % kEveryNth != 0) continue;
        spec.bias_shape = {0, 1, 0, 0};
        if (seed % 2 == 0) spec.softcap = 1.5, spec.dropout = 0.2;
        CheckAgainstReference<float>(spec);
        CheckAgainstReference<double>(spec);
      }
    }
  }
}

// The edges of vectors, panels, tiles and blocks; every layout and type.
TEST_P(CustomScoreOn, AScoreOfAnySizeIsThatOfItsFormulaInFloat64) {
  std::uint64_t seed = 100;
  for (TestScore score : kOwn) {
    for (std::int64_t S : {0, 1, 17, 64, 65, 257}) {
      for (std::int64_t D : {0, 1, 8, 17, 65}) {
        Spec spec{.B = 1, .H = 4, .G = 2, .S = S, .D = D, .score = score};
        spec.seed = ++seed;
        spec.L = seed % 7 == 0 ? 49 : static_cast<std::int64_t>(seed % 4);
        spec.layout = kLayouts[seed % 4];
        CheckAgainstReference<float>(spec);
        CheckAgainstReference<double>(spec);
        if (seed % 2 == 0) CheckAgainstReference<BFloat16>(spec);
        if (seed % 2 != 0) CheckAgainstReference<Float16>(spec);
      }
    }
  }
}

// A formula that no built-in score has.
TEST_P(CustomScoreOn, TheGradientOfAScoreIsThatOfFiniteDifferences) {
  for (const Normalizer& normalizer : kNormalizers) {
    Spec spec{.B = 1, .H = 2, .G = 1, .L = 4, .S = 300, .D = 3, .score = TestScore::kOwnAdditive};
    spec.normalizer = normalizer, spec.want_weights = false, spec.upstream_lse = true;
    Case<double> c(spec);
    c.options.score = CustomScore<double>(Manhattan{}, c.w.view());
    c.Run();
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 4; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < 300; ++j) {
          double s = 0;
          for (std::int64_t d = 0; d < 3; ++d) s -= c.w(h, d) * std::abs(c.q(0, h, i, d) - c.k(0, 0, j, d));
          sum += std::exp(s);
        }
        EXPECT_NEAR(c.lse(0, h, i), std::log(sum), 1e-12);
      }
    }
    for (std::int64_t n = 0; n < c.q.size(); ++n) CheckDerivative(c, c.q.Element(n), c.dq.Element(n));
    for (std::int64_t n = 0; n < c.k.size(); n += 17) CheckDerivative(c, c.k.Element(n), c.dk.Element(n));
    for (std::int64_t n = 0; n < c.w.size(); ++n) CheckDerivative(c, c.w.Element(n), c.dw.Element(n));
  }
}

// Not finite, nor its derivative, where k is q or more: all of that is masked here.
struct Root {
  auto operator()(auto q, auto k, auto w) const { return w * Sqrt(q - k) + 1 / (q - k); }
};

TEST_P(CustomScoreOn, WhatIsMaskedDoesNotExist) {
  std::size_t n = 0;
  for (float value : {kNaN, kInf, -kInf, 1e10f}) {
    Spec spec{.B = 2, .H = 2, .G = 1, .L = 110, .S = 600, .D = 7, .E = 4, .score = TestScore::kOwnAdditive};
    spec.normalizer = kNormalizers[n++ % kNormalizers.size()];
    spec.bias_shape = {0, 0, 0, 0}, spec.upstream_lse = true;
    Case<float> zero(spec), other(spec);
    for (Case<float>* c : {&zero, &other}) {
      const float x = c == &zero ? 0.0f : value;
      c->options.score = CustomScore<float>(Manhattan{}, c->w.view());
      c->keep = Tensor<bool, 4>({1, 1, 1, spec.S}, true);
      for (std::int64_t j = 0; j < spec.S; j += 2) {
        c->keep(0, 0, 0, j) = false;
        for (std::int64_t d = 0; d < spec.D; ++d) c->k(1, 0, j, d) = x;
        for (std::int64_t e = 0; e < spec.E; ++e) c->v(1, 0, j, e) = x;
      }
      c->options.mask.keep = Keep{c->keep.view()};
      c->Run();
    }
    EXPECT_TRUE(AllResultsFinite(other)) << value;
    EXPECT_TRUE(zero.Bits() == other.Bits()) << value;
  }
}

TEST_P(CustomScoreOn, AFormulaThatIsNotFiniteWhereTheMaskForbidsIsNothing) {
  for (const Normalizer& normalizer : kNormalizers) {
    Spec spec{.B = 1, .L = 300, .S = 300, .score = TestScore::kOwnAdditive, .normalizer = normalizer};
    spec.upstream_lse = true;
    Case<float> c(spec);
    c.options.mask.causal = Causal{};
    c.options.mask.exclude_self = true;  // query i sees keys 0 .. i - 1
    c.options.score = CustomScore<float>(Root{}, c.w.view());
    for (std::int64_t j = 0; j < 300; ++j) {
      for (std::int64_t d = 0; d < spec.D; ++d) {
        for (std::int64_t h = 0; h < spec.H; ++h) c.q(0, h, j, d) = static_cast<float>(j) / 8;
        for (std::int64_t g = 0; g < spec.G; ++g) c.k(0, g, j, d) = static_cast<float>(j) / 8;
      }
    }
    c.Run();
    EXPECT_TRUE(AllResultsFinite(c)) << spec.Text();
  }
}

TEST(CustomScore, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<std::string> bits;
  for (int threads : {1, 2, 5}) {
    Spec spec{.L = 110, .S = 600, .D = 20, .score = TestScore::kOwnAdditive, .want_weights = false};
    Case<float> c(spec);
    c.options.threads = threads;
    c.Run();
    bits.push_back(c.Bits());
  }
  EXPECT_TRUE(bits[0] == bits[1] && bits[0] == bits[2]);
}

TEST(CustomScore, TheWeightsOfAScoreOfTheWrongShapeAreNamed) {
  Case<float> c(Spec{});
  Tensor<float, 2> w({1, 2}), dw({1, 6}), dw_of_heads({4, 6});
  c.options.score = CustomScore<float>(Manhattan{}, w.view());
  EXPECT_EQ(c.Forward().message(),
            "score CustomScore's w has shape [1, 2]; expected [H or 1, D] = [4 or 1, 6]");
  c.options.score = CustomScore<float>(Manhattan{});
  EXPECT_EQ(c.Forward().message(),
            "score CustomScore's w has shape [0, 0]; expected [H or 1, D] = [4 or 1, 6]");
  c.options.score = CustomScore<float>([](auto q, auto k) { return q * k; });
  ASSERT_EQ(c.Forward().message(), "");
  AttentionGradients<float> gradients;
  gradients.dw = dw.view();
  EXPECT_EQ(AttentionBackward(c.options, c.Inputs(), c.Upstream(), gradients).message(),
            "dw is asked for with a score that has no w; it needs Additive or a CustomScore with one");
  c.options.score = CustomScore<float>(Manhattan{}, dw_of_heads.view());
  EXPECT_EQ(AttentionBackward(c.options, c.Inputs(), c.Upstream(), gradients).message(),
            "dw has shape [1, 6]; expected w's shape = [4, 6]");
}

}  // namespace
}  // namespace regard::engine
