// Masks and changes of the caller's own, as regard/custom.h has them: against the built-in parts that they
// repeat, against the formula in float64 and finite differences, and by the contract.
#include "regard/custom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/testing/case.h"
#include "engine/testing/contract.h"
#include "engine/testing/derivative.h"
#include "engine/testing/targets.h"
#include "regard/attention.h"

namespace regard::engine {
namespace {

struct LearnedAlibi {
  static constexpr int kParameters = 1;
  auto operator()(auto s, const auto& at, const auto& slope) const { return s - slope[0] * Abs(at.offset); }
};

struct Softcapped {
  double cap;
  auto operator()(auto s, const auto&, const auto&) const { return cap * Tanh(s / cap); }
};

// Two parameters, and a formula in which all of its numbers meet.
struct Curved {
  static constexpr int kParameters = 2;
  auto operator()(auto s, const auto& at, const auto& p) const {
    return p[0] * Sin(s + p[1] * at.offset / 50) + s * s / 8 + 0.1 * static_cast<double>(at.h);
  }
};

// Infinite on the diagonal.
struct Pole {
  static constexpr int kParameters = 1;
  auto operator()(auto s, const auto& at, const auto& p) const { return s + p[0] / at.offset; }
};

struct SameDocument {
  const std::int64_t *query, *key;
  bool operator()(const Pair& at) const { return query[at.i] == key[at.j]; }
};

// The same, which answers for a tile by the first and last of rising numbers.
struct SameSortedDocument : SameDocument {
  TileClass Classify(const Tile& t) const {
    if (query[t.i1 - 1] < key[t.j0] || key[t.j1 - 1] < query[t.i0]) return TileClass::kEmpty;
    const bool one = query[t.i0] == query[t.i1 - 1] && key[t.j0] == key[t.j1 - 1];
    return one ? TileClass::kFull : TileClass::kPartial;
  }
};

class CustomOn : public OnTarget {};
REGARD_ON_EVERY_TARGET(CustomOn);

Spec Long() { return {.B = 2, .H = 2, .G = 1, .L = 110, .S = 600, .D = 20, .E = 12, .want_weights = false}; }

template <typename T, std::size_t kRank>
void ExpectNear(const Tensor<T, kRank>& a, const Tensor<T, kRank>& b, double tolerance, const char* name) {
  ASSERT_EQ(a.shape(), b.shape());
  for (std::int64_t n = 0; n < a.size(); ++n) {
    const double x = a.Element(n), y = b.Element(n);
    if (x == y) continue;  // perhaps infinite
    ASSERT_NEAR(x, y, tolerance * (1 + std::abs(y))) << name << " " << n;
  }
}

template <typename T>
void ExpectSameResults(const Case<T>& a, const Case<T>& b) {
  const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;
  ExpectNear(a.out, b.out, tolerance, "out");
  ExpectNear(a.lse, b.lse, tolerance, "lse");
  ExpectNear(a.weights, b.weights, tolerance, "weights");
  ExpectNear(a.dq, b.dq, tolerance, "dq");
  ExpectNear(a.dk, b.dk, tolerance, "dk");
  ExpectNear(a.dv, b.dv, tolerance, "dv");
  ExpectNear(a.dbias, b.dbias, tolerance, "dbias");
  ExpectNear(a.dw, b.dw, tolerance, "dw");
  ExpectNear(a.dprecision, b.dprecision, tolerance, "dprecision");
}

// Runs both passes and gives the gradient of the change's parameters.
template <typename T>
Tensor<SumType<T>, 2> RunWithChange(const Case<T>& c, const Tensor<SumType<T>, 2>& parameters) {
  EXPECT_EQ(c.Forward().message(), "");
  Tensor<SumType<T>, 2> dchange(parameters.shape(), 77);
  AttentionGradients<T> gradients = c.Gradients();
  gradients.dchange = dchange.view();
  EXPECT_EQ(AttentionBackward(c.options, c.Inputs(), c.Upstream(), gradients).message(), "");
  return dchange;
}

template <typename T>
void LearnedAlibiIsAlibi(Spec spec) {
  spec.alibi = true;
  Case<T> own(spec), custom(spec);
  own.Run();
  Tensor<SumType<T>, 2> slopes({spec.H, 1});
  for (std::int64_t h = 0; h < spec.H; ++h) slopes(h, 0) = custom.slopes(h);
  custom.options.alibi.reset();
  custom.options.change = CustomChange<SumType<T>>(LearnedAlibi{}, slopes.view());
  RunWithChange(custom, slopes);
  ExpectSameResults(own, custom);
}

TEST_P(CustomOn, ALearnedSlopeIsAlibi) {
  std::size_t n = 0;
  for (std::int64_t S : {0, 1, 7, 256, 600}) {
    for (TestScore score : kScores) {
      if (score == TestScore::kTricube) continue;
      Spec spec = Long();
      spec.S = S;
      spec.score = score;
      spec.normalizer = kNormalizers[n++ % kNormalizers.size()];
      spec.softcap = 0.7;  // comes before either
      spec.bias_shape = {1, 2, 1, 2};
      spec.dropout = 0.1;
      spec.want_weights = true;
      if (n % 2 == 0) LearnedAlibiIsAlibi<float>(spec);
      if (n % 2 != 0) LearnedAlibiIsAlibi<double>(spec);
    }
  }
}

TEST(Custom, AChangeMayBeASoftcap) {
  Spec spec = Long();
  spec.softcap = 0.7;
  spec.alibi = true;  // comes after either
  Case<double> own(spec), custom(spec);
  own.Run();
  custom.options.softcap.reset();
  custom.options.change = CustomChange<double>(Softcapped{0.7});
  custom.Run();
  ExpectSameResults(own, custom);
}

TEST_P(CustomOn, TheGradientOfAChangeIsThatOfFiniteDifferences) {
  for (bool shared : {false, true}) {
    for (const Normalizer& normalizer : kNormalizers) {
      Spec spec{.L = 9, .S = 300, .mask = TestMask::kCausalBottomRight, .normalizer = normalizer};
      spec.want_weights = false, spec.upstream_lse = true;
      const Case<double> c(spec);
      Case<double> changed = c;
      Tensor<double, 2> parameters = TestRandom(3).Values<double, 2>({shared ? 1 : spec.H, 2}, 0.5, 0.6);
      changed.options.change = CustomChange<double>(Curved{}, parameters.view());
      const Tensor<double, 2> gradient = RunWithChange(changed, parameters);
      for (std::int64_t n = 0; n < parameters.size(); ++n)
        CheckDerivative(changed, parameters.Element(n), gradient.Element(n));
      for (std::int64_t n = 0; n < 100; n += 7)
        CheckDerivative(changed, changed.q.Element(n), changed.dq.Element(n));
      for (std::int64_t n = 0; n < 2000; n += 101)
        CheckDerivative(changed, changed.k.Element(n), changed.dk.Element(n));
    }
  }
}

TEST(Custom, AFloat32GradientOfParametersIsThatOfFloat64) {
  Spec spec = Long();
  Tensor<float, 2> narrow({1, 2}, 0.5f);
  Tensor<double, 2> wide({1, 2}, 0.5);
  Case<float> a(spec);
  Case<double> b(spec);
  a.options.change = CustomChange<float>(Curved{}, narrow.view());
  b.options.change = CustomChange<double>(Curved{}, wide.view());
  const auto da = RunWithChange(a, narrow);
  const auto db = RunWithChange(b, wide);
  for (std::int64_t n = 0; n < 2; ++n)
    EXPECT_NEAR(da.Element(n), db.Element(n), 1e-5 * std::abs(db.Element(n)));
}

TEST_P(CustomOn, ADocumentMaskIsSegmentsBitForBit) {
  for (TestScore score : kScores) {
    for (const Normalizer& normalizer : kNormalizers) {
      Spec spec{.B = 1,
                .H = 2,
                .G = 1,
                .L = 120,
                .S = 300,
                .score = score,
                .normalizer = normalizer,
                .want_weights = false};
      Case<float> own(spec), custom(spec), sorted(spec);
      own.query_segments = Tensor<std::int64_t, 2>({1, 120});
      own.key_segments = Tensor<std::int64_t, 2>({1, 300});
      for (std::int64_t i = 0; i < 120; ++i) own.query_segments(0, i) = i / 50;
      for (std::int64_t j = 0; j < 300; ++j) own.key_segments(0, j) = j / 90;  // one more, which nobody sees
      own.options.mask.segments = Segments{own.query_segments.view(), own.key_segments.view()};
      const SameDocument same{own.query_segments.view().data, own.key_segments.view().data};
      custom.options.mask.custom = CustomMask(same);
      sorted.options.mask.custom = CustomMask(SameSortedDocument{same});
      for (Case<float>* c : {&own, &custom, &sorted}) {
        c->options.mask.causal = Causal{Corner::kBottomRight};
        c->Run();
      }
      EXPECT_TRUE(own.Bits() == custom.Bits()) << spec.Text();
      EXPECT_TRUE(own.Bits() == sorted.Bits()) << spec.Text();
      EXPECT_THAT(Row(own.out, 0, 0, 119), ::testing::Contains(::testing::Ne(0.0f)));
    }
  }
}

TEST(Custom, TilesThatAMaskEmptiesAreNotVisited) {
  struct Counting {
    std::int64_t* calls;
    bool operator()(const Pair& at) const {
      ++*calls;
      return at.j < 256;
    }
    TileClass Classify(const Tile& t) const { return t.j0 >= 256 ? TileClass::kEmpty : TileClass::kFull; }
  };
  std::int64_t calls = 0;
  Case<float> c(Long());
  c.options.mask.custom = CustomMask(Counting{&calls});
  c.options.threads = 1;
  c.Run();
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(AllResultsFinite(c));
}

TEST_P(CustomOn, WhatIsMaskedDoesNotExist) {
  struct Odd {
    bool operator()(const Pair& at) const { return at.j % 2 == 1; }
  };
  std::size_t n = 0;
  for (float value : {kNaN, kInf, -kInf, 1e10f}) {
    Spec spec = Long();
    spec.normalizer = kNormalizers[n++ % kNormalizers.size()];
    spec.softcap = 2;
    Case<float> zero(spec), other(spec);
    Tensor<float, 2> parameters({1, 2}, 0.5f);
    std::vector<Tensor<float, 2>> dchange;
    for (Case<float>* c : {&zero, &other}) {
      const float x = c == &zero ? 0.0f : value;
      c->options.mask.custom = CustomMask(Odd{});
      c->options.change = CustomChange<float>(Curved{}, parameters.view());
      for (std::int64_t j = 0; j < spec.S; j += 2) {
        for (std::int64_t d = 0; d < spec.D; ++d) c->k(1, 0, j, d) = x;
        for (std::int64_t e = 0; e < spec.E; ++e) c->v(1, 0, j, e) = x;
      }
      dchange.push_back(RunWithChange(*c, parameters));
    }
    EXPECT_TRUE(AllResultsFinite(other)) << value;
    EXPECT_TRUE(AllFinite(dchange[1])) << value;
    EXPECT_TRUE(zero.Bits() == other.Bits()) << value;
    EXPECT_EQ(dchange[0].Values(), dchange[1].Values()) << value;
  }
}

TEST(Custom, AChangeThatIsNotFiniteWhereTheMaskForbidsIsNothing) {
  Spec spec = Long();
  Case<float> c(spec);
  c.options.mask.exclude_self = true;
  Tensor<float, 2> parameters({spec.H, 1}, 0.5f);
  c.options.change = CustomChange<float>(Pole{}, parameters.view());
  const auto dchange = RunWithChange(c, parameters);
  EXPECT_TRUE(AllResultsFinite(c));
  EXPECT_TRUE(AllFinite(dchange));
}

TEST(Custom, AQueryThatSeesNothingIsZero) {
  struct Nothing {
    bool operator()(const Pair& at) const { return at.i != 3; }
  };
  Case<float> c(Long());
  c.options.mask.custom = CustomMask(Nothing{});
  c.Run();
  for (std::int64_t h = 0; h < 2; ++h) {
    EXPECT_THAT(Row(c.out, 1, h, 3), ::testing::Each(0.0f));
    EXPECT_THAT(Row(c.dq, 1, h, 3), ::testing::Each(0.0f));
    EXPECT_EQ(c.lse(1, h, 3), -kInf);
  }
  EXPECT_TRUE(AllResultsFinite(c));
}

TEST(Custom, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<std::string> bits;
  std::vector<std::vector<float>> gradients;
  Tensor<float, 2> parameters({1, 2}, 0.5f);
  for (int threads : {1, 2, 5}) {
    Case<float> c(Long());
    c.options.threads = threads;
    c.options.change = CustomChange<float>(Curved{}, parameters.view());
    gradients.push_back(RunWithChange(c, parameters).Values());
    bits.push_back(c.Bits());
  }
  EXPECT_TRUE(bits[0] == bits[1] && bits[0] == bits[2]);
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(gradients[0], gradients[2]);
}

TEST(Custom, GradientsOfParametersAddUpWhereAskedTo) {
  Spec spec = Long();
  Case<float> c(spec);
  Tensor<float, 2> parameters({spec.H, 2}, 0.5f);
  c.options.change = CustomChange<float>(Curved{}, parameters.view());
  const auto once = RunWithChange(c, parameters);
  Tensor<float, 2> added({spec.H, 2}, 3);
  AttentionGradients<float> gradients;
  gradients.dchange = added.view();
  gradients.accumulate = true;
  ASSERT_TRUE(AttentionBackward(c.options, c.Inputs(), c.Upstream(), gradients).ok());
  for (std::int64_t n = 0; n < added.size(); ++n) {
    EXPECT_FLOAT_EQ(added.Element(n), 3 + once.Element(n));
  }
}

TEST(Custom, SixteenBitTensorsAreChangedInFloat32) {
  Spec spec = Long();
  Case<BFloat16> c(spec);
  Case<float> same(spec);
  Tensor<float, 2> parameters({1, 2}, 0.5f);
  c.options.change = CustomChange<float>(Curved{}, parameters.view());
  same.options.change = c.options.change;
  for (std::int64_t n = 0; n < c.q.size(); ++n) same.q.Element(n) = c.q.Element(n);
  for (std::int64_t n = 0; n < c.k.size(); ++n) same.k.Element(n) = c.k.Element(n);
  for (std::int64_t n = 0; n < c.v.size(); ++n) same.v.Element(n) = c.v.Element(n);
  ASSERT_TRUE(c.Forward().ok());
  ASSERT_TRUE(same.Forward().ok());
  EXPECT_EQ(c.lse.Values(), same.lse.Values());
}

TEST(Custom, ParametersOfTheWrongShapeAreNamed) {
  Spec spec;
  Case<float> c(spec);
  Tensor<float, 2> parameters({3, 2}, 0.5f), right({1, 2}, 0.5f);
  c.options.change = CustomChange<float>(Curved{}, parameters.view());
  EXPECT_EQ(c.Forward().message(),
            "change's parameters has shape [3, 2]; expected [H or 1, kParameters] = [4 or 1, 2]");
  c.options.change = CustomChange<float>(Curved{});
  EXPECT_EQ(c.Forward().message(),
            "change's parameters has shape [0, 0]; expected [H or 1, kParameters] = [4 or 1, 2]");
  c.options.change = CustomChange<float>(Curved{}, right.view());
  ASSERT_TRUE(c.Forward().ok());
  AttentionGradients<float> gradients;
  gradients.dchange = parameters.view();
  EXPECT_EQ(AttentionBackward(c.options, c.Inputs(), c.Upstream(), gradients).message(),
            "dchange has shape [3, 2]; expected the shape of change's parameters = [1, 2]");
  c.options.change.reset();
  EXPECT_EQ(AttentionBackward(c.options, c.Inputs(), c.Upstream(), gradients).message(),
            "dchange is asked for without a change");
}

TEST(Custom, RowsThatAreNullAreNamed) {
  Case<float> c(Spec{});
  c.options.score = CustomScore<float>(std::shared_ptr<const ScoreRows<float>>());
  EXPECT_EQ(c.Forward().message(), "score CustomScore's rows is null; expected a ScoreRows");
  EXPECT_EQ(AttentionBackward(c.options, c.Inputs(), c.Upstream(), AttentionGradients<float>()).message(),
            "score CustomScore's rows is null; expected a ScoreRows");
  c.options.score = ScaledDot{};
  c.options.change = CustomChange<float>(std::shared_ptr<const ChangeRows<float>>());
  EXPECT_EQ(c.Forward().message(), "change's rows is null; expected a ChangeRows");
  c.options.change.reset();
  c.options.mask.custom = CustomMask(std::shared_ptr<const MaskRows>());
  EXPECT_EQ(c.Forward().message(), "mask custom's rows is null; expected a MaskRows");
}

}  // namespace
}  // namespace regard::engine
