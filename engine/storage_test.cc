// Attention on tensors of 16 bits: the contract, and the edges of their range.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/testing/case.h"
#include "engine/testing/contract.h"

namespace regard::engine {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

template <typename T>
class Storage : public testing::Test {};
using Halves = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(Storage, Halves);

template <typename T>
bool ResultsAreFinite(const Case<T>& c) {
  return AllFinite(c.out) && AllFinite(c.weights) && AllFinite(c.dq) && AllFinite(c.dk) && AllFinite(c.dv) &&
         AllFinite(c.dbias) && AllFinite(c.dw) && AllFinite(c.dprecision);
}

TYPED_TEST(Storage, ScoresBeyondTheRangeOfFloat16AreFinite) {
  Spec spec{.L = 7, .S = 9, .D = 4};
  Case<TypeParam> c(spec);
  for (std::int64_t n = 0; n < c.q.size(); ++n) c.q.Element(n) = TypeParam(n % 3 == 0 ? -576.0f : 576.0f);
  for (std::int64_t n = 0; n < c.k.size(); ++n) c.k.Element(n) = TypeParam(n % 5 == 0 ? -383.0f : 383.0f);
  c.Run();
  EXPECT_TRUE(ResultsAreFinite(c));
  float largest = 0;
  for (float lse : c.lse.Values()) largest = std::max(largest, lse);
  EXPECT_GT(largest, 65504.0f);              // it is the scores that are beyond
  EXPECT_LT(largest, 576.0f * 384 * 2 + 3);  // 383 is 384 in bfloat16
}

TYPED_TEST(Storage, AMaskIsNoLargeNumber) {
  for (int mask = 0; mask <= static_cast<int>(TestMask::kMany); ++mask) {
    for (TestScore score : kScores) {
      Spec spec{.L = 6, .S = 10, .score = score, .mask = static_cast<TestMask>(mask)};
      spec.bias_shape = {{1, 0, 0, 0}}, spec.softcap = 3;
      const Case<TypeParam> c(spec);
      c.Run();
      EXPECT_TRUE(ResultsAreFinite(c)) << spec.Text();
    }
  }
}

TYPED_TEST(Storage, WhatIsMaskedChangesNothing) {
  Spec spec{.B = 1, .H = 1, .G = 1, .L = 2, .S = 3, .D = 4, .mask = TestMask::kNone};
  const auto run = [&](float masked) {
    Case<TypeParam> c(spec);
    c.lengths = Tensor<std::int64_t, 2>({1, 1}, 2);
    c.options.mask.lengths = Lengths{c.lengths.view()};
    for (std::int64_t d = 0; d < 4; ++d) c.k(0, 0, 2, d) = TypeParam(masked);
    for (std::int64_t e = 0; e < 3; ++e) c.v(0, 0, 2, e) = TypeParam(masked);
    c.Run();
    return c.Bits();
  };
  const std::string right = run(0);
  for (float masked : {kNaN, kInf, 1e10f}) EXPECT_EQ(run(masked), right) << masked;
}

TYPED_TEST(Storage, AnyStridesGiveTheBitsOfContiguousCopies) {
  for (std::int64_t S : {20, 1100}) {  // rows longer and shorter than what is converted at once
    Spec spec{.B = 1, .L = 5, .S = S, .D = 33, .E = 7, .mask = TestMask::kCausalBottomRight};
    const Case<TypeParam> contiguous(spec);
    contiguous.Run();
    for (Layout layout : kLayouts) {
      spec.layout = layout;
      const Case<TypeParam> other(spec);
      other.Run();
      EXPECT_EQ(contiguous.Bits(), other.Bits()) << spec.Text();
    }
  }
}

TYPED_TEST(Storage, ExpandedTensorsGiveTheBitsOfTheirCopies) {
  for (std::size_t dimension = 0; dimension < 4; ++dimension) {
    const Case<TypeParam> c{Spec()};
    const auto expand = [&](const auto& tensor) {
      auto view = tensor.view();
      view.strides[dimension] = 0;
      return view;
    };
    const AttentionInputs<TypeParam> in{expand(c.q), expand(c.k), expand(c.v)};
    AttentionUpstream<TypeParam> up = c.Upstream();
    up.dout = expand(c.dout);
    ASSERT_TRUE(AttentionForward(c.options, in, c.Outputs()).ok());
    ASSERT_TRUE(AttentionBackward(c.options, in, up, c.Gradients()).ok());
    const Case<TypeParam> copy{Spec()};
    const auto fill = [](const auto& to, const TensorView<const TypeParam, 4>& from) {
      for (std::int64_t n = 0; n < to.size(); ++n) {
        std::array<std::int64_t, 4> at;
        std::int64_t rest = n;
        for (std::size_t d = 4; d-- > 0; rest /= from.shape[d]) at[d] = rest % from.shape[d];
        to.Element(n) = from(at[0], at[1], at[2], at[3]);
      }
    };
    fill(copy.q, in.q), fill(copy.k, in.k), fill(copy.v, in.v), fill(copy.dout, *up.dout);
    copy.Run();
    EXPECT_EQ(c.Bits(), copy.Bits()) << dimension;
  }
}

TYPED_TEST(Storage, TheSameBitsOnAnyNumberOfThreads) {
  // More elements than one task converts.
  const Spec spec{.B = 2, .L = 300, .S = 200, .D = 65, .E = 33, .mask = TestMask::kCausal, .dropout = 0.2};
  const Case<TypeParam> one(spec);
  one.Run();
  Case<TypeParam> three(spec), backwards(spec);
  three.options.threads = 3;
  three.Run();
  EXPECT_EQ(one.Bits(), three.Bits());
  backwards.options.threads = 2;
  backwards.options.parallel_for = [](std::int64_t n, const std::function<void(std::int64_t)>& task) {
    while (n > 0) task(--n);
  };
  backwards.Run();
  EXPECT_EQ(one.Bits(), backwards.Bits());
}

TYPED_TEST(Storage, AccumulateAddsInFloatAndRoundsOnce) {
  const Spec spec{.score = TestScore::kAdditive};
  const Case<TypeParam> added(spec);
  ASSERT_TRUE(added.Forward().ok());
  AttentionGradients<TypeParam> gradients = added.Gradients();
  gradients.accumulate = true;
  ASSERT_TRUE(AttentionBackward(added.options, added.Inputs(), added.Upstream(), gradients).ok());

  // The same call in float32, on the same numbers: its sum, rounded, is what is expected.
  Case<float> wide(spec);
  const auto widen = [](const auto& to, const auto& from) {
    for (std::int64_t n = 0; n < to.size(); ++n) to.Element(n) = from.Element(n);
  };
  widen(wide.q, added.q), widen(wide.k, added.k), widen(wide.v, added.v), widen(wide.dout, added.dout);
  widen(wide.dweights, added.dweights), widen(wide.out, added.out), widen(wide.lse, added.lse);
  AttentionGradients<float> sums = wide.Gradients();
  sums.accumulate = true;
  ASSERT_TRUE(AttentionBackward(wide.options, wide.Inputs(), wide.Upstream(), sums).ok());
  const auto check = [](const auto& got, const Tensor<float, 4>& sum) {
    for (std::int64_t n = 0; n < sum.size(); ++n) {
      ASSERT_EQ(got.Element(n).bits, TypeParam(sum.Element(n)).bits) << n;
    }
  };
  check(added.dq, wide.dq), check(added.dk, wide.dk), check(added.dv, wide.dv);
  EXPECT_EQ(added.dw.Values(), wide.dw.Values());
}

TYPED_TEST(Storage, SizesOfZeroGiveEmptyOrZeroResults) {
  for (int which = 0; which < 6; ++which) {
    Spec spec{.L = 4, .S = 3};
    std::int64_t* const sizes[] = {&spec.B, &spec.H, &spec.L, &spec.S, &spec.D, &spec.E};
    *sizes[which] = 0;
    if (spec.H == 0) spec.G = 0;
    const Case<TypeParam> c(spec);
    c.Run();
    if (spec.S > 0) continue;
    EXPECT_THAT(c.out.Values(), Each(0.0f));
    EXPECT_THAT(c.dq.Values(), Each(0.0f));
  }
}

TYPED_TEST(Storage, WhatDoesNotFitIsSaid) {
  const Case<TypeParam> c(Spec{.H = 3, .G = 2});
  EXPECT_THAT(c.Forward().message(), HasSubstr("k has 2 heads, which does not divide q's 3 heads"));
  // Overlapping rows: few bytes of the caller's, but a float32 copy that 64 bits cannot count.
  const Case<TypeParam> d{Spec()};
  AttentionInputs<TypeParam> in = d.Inputs();
  const std::int64_t many = std::int64_t{1} << 62;
  in.q = {in.q.data, {1, 1, many / 2, 2}, {1, 1, 1, 1}};
  EXPECT_THAT(AttentionForward(d.options, in, d.Outputs()).message(), HasSubstr("does not fit 64 bits"));
}

}  // namespace
}  // namespace regard::engine
