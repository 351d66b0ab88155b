// Wrong arguments: the status names the argument, what it is and what was expected.
#include "engine/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "engine/testing/case.h"

namespace regard::engine {
namespace {

using ::testing::HasSubstr;

const Spec kSpec{.bias_shape = {{0, 0, 0, 0}}};  // B2 H4 G2 L5 S7 D6 E3

// The message for a call that `spoil` has changed.
std::string Message(const std::function<void(Case<float>*)>& spoil, const Spec& spec = kSpec) {
  Case<float> c(spec);
  spoil(&c);
  const Status forward = c.Forward(), backward = c.Backward();
  EXPECT_FALSE(forward.ok());
  EXPECT_FALSE(backward.ok());
  EXPECT_EQ(forward.message(), backward.message());
  return forward.message();
}

// The message of a backward call alone.
std::string BackwardMessage(
    const std::function<void(AttentionUpstream<float>*, AttentionGradients<float>*)>& spoil,
    const Spec& spec = kSpec) {
  Case<float> c(spec);
  EXPECT_TRUE(c.Forward().ok());
  AttentionUpstream<float> up = c.Upstream();
  AttentionGradients<float> gradients = c.Gradients();
  spoil(&up, &gradients);
  const Status status = AttentionBackward(c.options, c.Inputs(), up, gradients);
  EXPECT_FALSE(status.ok());
  return status.message();
}

TEST(Validate, InputsThatDoNotFitTogether) {
  EXPECT_THAT(Message([](auto* c) {
                c->k = Tensor<float, 4>({2, 3, 7, 6});
              }),
              HasSubstr("v has shape [2, 2, 7, 3]; expected [B, G, S, E] with B, G, S as in k [2, 3, 7, 6]"));
  EXPECT_THAT(Message([](auto* c) {
                c->k = Tensor<float, 4>({1, 2, 7, 6});
              }),
              HasSubstr("k has shape [1, 2, 7, 6]; expected batch size 2 as in q [2, 4, 5, 6]"));
  EXPECT_THAT(Message([](auto* c) {
                c->k = Tensor<float, 4>({2, 2, 7, 5});
              }),
              HasSubstr("k has shape [2, 2, 7, 5]; expected width 6 as in q [2, 4, 5, 6]"));
  Spec heads = kSpec;
  heads.H = 3;
  EXPECT_THAT(Message([](auto*) {}, heads),
              HasSubstr("k has 2 heads, which does not divide q's 3 heads (q [2, 3, 5, 6], k [2, 2, 7, 6])"));
}

TEST(Validate, SizesAndMemory) {
  Case<float> c(kSpec);
  AttentionInputs<float> in = c.Inputs();
  in.q.shape[2] = -1;
  EXPECT_THAT(AttentionForward(c.options, in, c.Outputs()).message(),
              HasSubstr("q has shape [2, 4, -1, 6]; sizes must not be negative"));
  in = c.Inputs();
  in.v.data = nullptr;
  EXPECT_THAT(AttentionForward(c.options, in, c.Outputs()).message(),
              HasSubstr("v has shape [2, 2, 7, 3] but a null pointer"));
  in = c.Inputs();
  in.q.shape = {std::int64_t{1} << 31, std::int64_t{1} << 31, 4, 6};
  EXPECT_THAT(AttentionForward(c.options, in, c.Outputs()).message(),
              HasSubstr("q has shape [2147483648, 2147483648, 4, 6]"));
  in = c.Inputs();
  in.q.strides[0] = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(AttentionForward(c.options, in, c.Outputs()).message(), HasSubstr("does not fit 64 bits"));
  // Each tensor fits (they are expanded), the pairs do not.
  float one = 1;
  const std::int64_t many = std::int64_t{1} << 32;
  in.q = {&one, {1, 1, many, 1}, {0, 0, 0, 0}};
  in.k = in.v = {&one, {1, 1, many, 1}, {0, 0, 0, 0}};
  EXPECT_THAT(AttentionForward(c.options, in, c.Outputs()).message(),
              HasSubstr("the number of pairs B H L S does not fit 64 bits"));
}

TEST(Validate, Options) {
  EXPECT_THAT(Message([](auto* c) { c->options.softcap = 0.0; }),
              HasSubstr("softcap is 0; expected a number above 0"));
  EXPECT_THAT(Message([](auto* c) { c->options.softcap = -2.5; }), HasSubstr("softcap is -2.5"));
  for (double p : {1.0, -0.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(Message([&](auto* c) { c->options.dropout.probability = p; }),
                HasSubstr("expected 0 <= probability < 1"));
  }
  EXPECT_THAT(Message([](auto* c) { c->options.threads = -1; }), HasSubstr("threads is -1"));
  EXPECT_THAT(Message([](auto* c) {
                c->bias = Tensor<float, 4>({2, 4, 5, 6});
                c->dbias = Tensor<float, 4>({2, 4, 5, 6});
                c->options.bias = c->bias.view();
              }),
              HasSubstr("bias has shape [2, 4, 5, 6]; expected [B or 1, H or 1, L or 1, S or 1]"));
  EXPECT_THAT(Message([](auto* c) {
                c->slopes = Tensor<float, 1>({3});
                c->options.alibi = Alibi<float>{c->slopes.view()};
              }),
              HasSubstr("alibi slopes has shape [3]; expected [H] = [4]"));
}

TEST(Validate, Scores) {
  EXPECT_THAT(Message([](auto* c) { c->options.score = Dot{std::numeric_limits<double>::infinity()}; }),
              HasSubstr("score Dot has scale inf"));
  EXPECT_THAT(Message([](auto* c) {
                c->options.score = Cosine{1.0, 0.0};
              }),
              HasSubstr("score Cosine has eps 0"));
  const Tensor<float, 2> w({2, 6});
  EXPECT_THAT(Message([&](auto* c) { c->options.score = Additive<float>{w.view()}; }),
              HasSubstr("score Additive's w has shape [2, 6]; expected [H or 1, D] = [4 or 1, 6]"));
  const Tensor<float, 1> precision({5});
  EXPECT_THAT(Message([&](auto* c) { c->options.score = Gaussian<float>{precision.view()}; }),
              HasSubstr("score Gaussian's precision has shape [5]; expected [1] or [D] = [6]"));
  EXPECT_THAT(Message([&](auto* c) {
                c->options.score = Compact<float>{CompactKernel::kTricube, precision.view()};
              }),
              HasSubstr("score Compact's precision has shape [5]; expected [1] or [D] = [6]"));
  const Tensor<float, 1> one({1});
  EXPECT_THAT(Message([&](auto* c) {
                c->options.score = Compact<float>{static_cast<CompactKernel>(4), one.view()};
              }),
              HasSubstr("score Compact's kernel is 4; expected a CompactKernel"));
}

TEST(Validate, Masks) {
  const auto lengths = [](std::array<std::int64_t, 2> shape, std::int64_t value) {
    return [=](Case<float>* c) {
      c->lengths = Tensor<std::int64_t, 2>(shape, value);
      c->options.mask.lengths = Lengths{c->lengths.view()};
    };
  };
  EXPECT_THAT(Message(lengths({2, 1}, 8)), HasSubstr("mask lengths[0, 0] is 8; expected 0 to S = 7"));
  EXPECT_THAT(Message(lengths({2, 5}, -1)), HasSubstr("mask lengths[0, 0] is -1; expected 0 to S = 7"));
  EXPECT_THAT(Message(lengths({2, 3}, 1)), HasSubstr("mask lengths has shape [2, 3]"));
  const Tensor<std::int64_t, 2> queries({1, 5}), keys({1, 6});
  EXPECT_THAT(Message([&](auto* c) {
                c->options.mask.segments = Segments{queries.view(), keys.view()};
              }),
              HasSubstr("mask segments.key has shape [1, 6]"));
  const Tensor<bool, 4> map({1, 1, 2, 2}), keep({1, 1, 4, 7});
  const auto blocks = [&](std::int64_t query_size, std::int64_t key_size) {
    return [&map, query_size, key_size](Case<float>* c) {
      c->options.mask.blocks = Blocks{map.view(), query_size, key_size};
    };
  };
  EXPECT_THAT(Message(blocks(0, 4)), HasSubstr("mask blocks.query_size is 0; expected at least 1"));
  EXPECT_THAT(Message(blocks(3, -4)), HasSubstr("mask blocks.key_size is -4; expected at least 1"));
  EXPECT_THAT(Message(blocks(2, 4)), HasSubstr("mask blocks.map has shape [1, 1, 2, 2]"));
  EXPECT_THAT(Message([&](auto* c) { c->options.mask.keep = Keep{keep.view()}; }),
              HasSubstr("mask keep has shape [1, 1, 4, 7]; expected [B or 1, H or 1, L or 1, S or 1]"));
}

TEST(Validate, Outputs) {
  Case<float> c(kSpec);
  AttentionOutputs<float> out = c.Outputs();
  out.out.shape[3] = 4;
  EXPECT_THAT(AttentionForward(c.options, c.Inputs(), out).message(),
              HasSubstr("out has shape [2, 4, 5, 4]; expected [B, H, L, E] = [2, 4, 5, 3]"));
  out = c.Outputs();
  out.lse->strides[1] = 0;
  EXPECT_THAT(AttentionForward(c.options, c.Inputs(), out).message(),
              HasSubstr("a tensor that is written may not have stride 0 in a dimension of size 4"));
  out = c.Outputs();
  out.index = c.index.view();
  EXPECT_THAT(AttentionForward(c.options, c.Inputs(), out).message(),
              HasSubstr("index is asked for with normalizer Softmax; it needs Argmax or Sample"));
}

TEST(Validate, UpstreamAndGradients) {
  EXPECT_THAT(BackwardMessage([](auto* up, auto*) { up->dout->shape[0] = 3; }),
              HasSubstr("dout has shape [3, 4, 5, 3]; expected [B, H, L, E] = [2, 4, 5, 3]"));
  EXPECT_THAT(BackwardMessage([](auto* up, auto*) { up->lse = {}; }), HasSubstr("lse has shape [0, 0, 0]"));
  Spec hard = kSpec;
  hard.normalizer = Argmax{};
  EXPECT_THAT(BackwardMessage([](auto* up, auto*) { up->index.reset(); }, hard),
              HasSubstr("index is not given; normalizer Argmax or Sample needs it"));
  const Tensor<std::int64_t, 3> index({2, 4, 5}, 7);
  EXPECT_THAT(BackwardMessage([&](auto* up, auto*) { up->index = index.view(); }, hard),
              HasSubstr("index[0, 0, 0] is 7; expected -1 to S - 1 = 6"));
  const Tensor<float, 2> dw({1, 6});
  EXPECT_THAT(BackwardMessage([&](auto*, auto* gradients) { gradients->dw = dw.view(); }),
              HasSubstr("dw is asked for with a score that has no w; it needs Additive or a CustomScore"));
  const Tensor<float, 1> dprecision({1});
  EXPECT_THAT(
      BackwardMessage([&](auto*, auto* gradients) { gradients->dprecision = dprecision.view(); }),
      HasSubstr("dprecision is asked for with a score that has no precision; it needs Gaussian or Compact"));
  EXPECT_THAT(BackwardMessage([](auto*, auto* gradients) { gradients->dk->shape[1] = 4; }),
              HasSubstr("dk has shape [2, 4, 7, 6]"));
}

}  // namespace
}  // namespace regard::engine
