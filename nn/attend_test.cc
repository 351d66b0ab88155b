// regard::attend against ATen: the fallback, scaled_dot_product_attention, and difference quotients.
#include "nn/attend.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "nn/attend_op.h"
#include "nn/attend_testing.h"

namespace regard::nn {
namespace {

using ::testing::HasSubstr;
using namespace attend_testing;  // NOLINT(google-build-using-namespace)

TEST(Attend, EngineAndFallbackAgree) {
  ForEachVariant([](const AttendCall& call) {
    const Trial engine = TrialOf(DispatchAttend, call), fallback = TrialOf(FallbackAttend, call);
    for (std::size_t n = 0; n < kAttendOutputs; ++n) {
      ExpectSame(engine.outputs[n], fallback.outputs[n], 1e-9, "output " + std::to_string(n));
    }
    for (std::size_t n = 0; n < engine.gradients.size(); ++n) {
      ExpectSame(engine.gradients[n], fallback.gradients[n], 1e-9, "gradient " + std::to_string(n));
    }
  });
}

TEST(Attend, GradientsEqualDifferenceQuotients) {
  for (const Variant& score : Scores()) {
    for (const Variant& normalizer : Normalizers()) {
      if (normalizer.name == "argmax" || normalizer.name == "sample")
        continue;  // steps where the choice turns
      SCOPED_TRACE(score.name + ", " + normalizer.name);
      AttendOptions options;
      options.softcap = 2.0;
      options.causal = true;
      options.bias = Random({H, 1, S}, 6);
      options.return_lse = options.return_weights = true;
      score.set(&options);
      normalizer.set(&options);
      const AttendCall call = MakeCall(options);
      const Trial run = TrialOf(DispatchAttend, call);
      std::size_t input = 0;
      for (std::size_t n = 0; n < AttendCall::kDifferentiable; ++n) {
        AttendCall moved = call;
        Tensor& tensor = *moved.Tensors()[n];
        if (!tensor.defined()) continue;
        const Tensor gradient = run.gradients[input++];
        const Tensor direction = Random(tensor.sizes(), 40 + n), base = tensor;
        constexpr double kStep = 1e-5;
        tensor = base + kStep * direction;
        const Tensor above = Loss(DispatchAttend(moved));
        tensor = base - kStep * direction;
        const Tensor below = Loss(DispatchAttend(moved));
        const double quotient = ((above - below) / (2 * kStep)).item<double>();
        EXPECT_NEAR((gradient * direction).sum().item<double>(), quotient, 1e-7 * (1 + std::abs(quotient)))
            << "tensor " << n;
      }
    }
  }
}

TEST(Attend, EqualsScaledDotProductAttention) {
  const auto leaf = [](at::IntArrayRef sizes, std::uint64_t seed) {
    return Random(sizes, seed).to(torch::kFloat).requires_grad_();
  };
  const Tensor q = leaf({2, 4, 33, 16}, 1), k = leaf({2, 2, 33, 16}, 2), v = leaf({2, 2, 33, 24}, 3);
  const Tensor keep = Random({2, 1, 33, 33}, 4) > -1, bias = leaf({4, 33, 33}, 5);
  struct Case {
    AttendOptions options;
    std::optional<Tensor> mask;
    bool causal = false;
  };
  std::vector<Case> cases(4);
  cases[1].options.causal = cases[1].causal = true;
  cases[2].options.keep = keep;
  cases[2].mask = keep;
  cases[3].options.bias = bias;
  cases[3].mask = bias;
  for (const Case& c : cases) {
    const Tensor mine = Attend(q, k, v, c.options).out;
    const Tensor theirs =
        at::scaled_dot_product_attention(q, k, v, c.mask, 0.0, c.causal, std::nullopt, true);
    ExpectSame(mine, theirs, 2e-5, "out");
    std::vector<Tensor> inputs{q, k, v};
    if (c.options.bias.defined()) inputs.push_back(bias);
    const Tensor up = Random(mine.sizes(), 6).to(torch::kFloat);
    const auto d_mine = torch::autograd::grad({mine}, inputs, {up});
    const auto d_theirs = torch::autograd::grad({theirs}, inputs, {up});
    for (std::size_t n = 0; n < inputs.size(); ++n) ExpectSame(d_mine[n], d_theirs[n], 1e-4, "gradient");
  }
}

TEST(Attend, RanksWithoutHeadsOrBatch) {
  const Tensor q = Random({B, L, D}, 1), k = Random({B, S, D}, 2), v = Random({B, S, E}, 3);
  AttendOptions options;
  options.bias = Random({B, L, S}, 4);
  options.return_weights = options.return_lse = true;
  const AttendResult three = Attend(q, k, v, options);
  EXPECT_EQ(three.weights.sizes(), (at::IntArrayRef{B, L, S}));
  EXPECT_EQ(three.lse.sizes(), (at::IntArrayRef{B, L}));
  ExpectSame(three.out, torch::matmul(three.weights, v), 1e-12, "rank 3");
  options.bias = options.bias[1];
  const AttendResult two = Attend(q[1], k[1], v[1], options);
  ExpectSame(two.out, three.out[1], 1e-12, "rank 2");
  EXPECT_FALSE(two.index.defined());
}

// Case 9
TEST(Attend, AnyStrideGivesWhatContiguousGives) {
  const Tensor q = Random({B, L, H, 2 * D}, 1).slice(3, 0, 2 * D, 2).transpose(1, 2);
  const Tensor k = Random({D, S}, 2).t().expand({B, G, S, D});
  const Tensor v = Random({S, E, G, B}, 3).permute({3, 2, 0, 1});
  AttendOptions options;
  options.keep = (Random({S, 1}, 4) > -1).t().expand({L, S});
  const auto run = [&](bool contiguous) {
    const auto leaf = [&](const Tensor& t) {
      return (contiguous ? t.contiguous() : t).detach().requires_grad_();
    };
    const std::vector<Tensor> inputs{leaf(q), leaf(k), leaf(v)};
    AttendOptions o = options;
    if (contiguous) o.keep = o.keep.contiguous();
    const Tensor out = Attend(inputs[0], inputs[1], inputs[2], o).out;
    const Tensor up = Random({E, L, H, B}, 5).permute({3, 2, 1, 0});
    std::vector<Tensor> all = torch::autograd::grad({out}, inputs, {contiguous ? up.contiguous() : up});
    all.push_back(out);
    all.push_back(
        torch::autograd::grad({Attend(inputs[0], inputs[1], inputs[2], o).out.sum()}, {inputs[2]})[0]);
    return all;
  };
  const auto strided = run(false), contiguous = run(true);
  for (std::size_t n = 0; n < strided.size(); ++n) EXPECT_TRUE(torch::equal(strided[n], contiguous[n])) << n;
}

// Case 4, in both implementations
TEST(Attend, MaskedNanHasNoEffect) {
  for (const Variant& score : Scores()) {
    for (const auto& attend : {DispatchAttend, FallbackAttend}) {
      SCOPED_TRACE(score.name);
      AttendOptions options;
      score.set(&options);
      options.return_lse = options.return_weights = true;
      options.keep = torch::ones({B, H, L, S}, torch::kBool);
      options.keep.select(3, 1).fill_(false);
      options.keep.select(2, 4).fill_(false);  // a row of its own without a key
      AttendCall call = MakeCall(options);
      call.k.select(2, 1).fill_(0);
      call.v.select(2, 1).fill_(0);
      const Trial clean = TrialOf(attend, call);
      for (double bad : {kNan, std::numeric_limits<double>::infinity(), 1e300}) {
        call.k.select(2, 1).fill_(bad);
        call.v.select(2, 1).fill_(bad);
        const Trial dirty = TrialOf(attend, call);
        for (std::size_t n = 0; n < kAttendOutputs; ++n) {
          EXPECT_TRUE(torch::equal(dirty.outputs[n], clean.outputs[n])) << "output " << n;
        }
        for (std::size_t n = 0; n < clean.gradients.size(); ++n) {
          EXPECT_TRUE(torch::equal(dirty.gradients[n], clean.gradients[n])) << "gradient " << n;
        }
      }
      EXPECT_TRUE(clean.outputs[kOut].select(2, 4).eq(0).all().item<bool>());
      EXPECT_TRUE(clean.outputs[kLse].select(2, 4).isneginf().all().item<bool>());
    }
  }
}

TEST(Attend, OutsideOfACompactKernelDoesNotExist) {
  for (const Variant& score : Scores()) {
    AttendOptions options;
    score.set(&options);
    if (!CompactKernelOf(options.score)) continue;
    SCOPED_TRACE(score.name);
    options.return_lse = options.return_weights = true;
    AttendCall call = MakeCall(options);
    call.q.select(2, 4).fill_(-1000);  // no key inside
    call.k.select(2, 1).fill_(1000);
    call.v.select(2, 1).fill_(0);
    for (const auto& attend : {DispatchAttend, FallbackAttend}) {
      const Trial clean = TrialOf(attend, call);
      for (double key : {1e5, std::numeric_limits<double>::infinity()}) {
        AttendCall far = call;
        far.k = call.k.clone(), far.v = call.v.clone();
        far.k.select(2, 1).fill_(key);
        far.v.select(2, 1).fill_(kNan);
        const Trial trial = TrialOf(attend, far);
        for (std::size_t n = 0; n < kAttendOutputs; ++n) {
          EXPECT_TRUE(torch::equal(trial.outputs[n], clean.outputs[n])) << "output " << n;
        }
        for (std::size_t n = 0; n < clean.gradients.size(); ++n) {
          EXPECT_TRUE(torch::equal(trial.gradients[n], clean.gradients[n])) << "gradient " << n;
        }
      }
      EXPECT_TRUE(clean.outputs[kOut].select(2, 4).eq(0).all().item<bool>());
      AttendCall nan = call;
      nan.k = call.k.clone();
      nan.k.select(2, 1).fill_(kNan);
      EXPECT_TRUE(attend(nan)[kOut].isnan().all().item<bool>());
    }
  }
}

TEST(Attend, FallbackSdpaKeepsTheContract) {
  AttendOptions options;
  options.causal = true;
  AttendCall call{Random({B, H, S, D}, 1), Random({B, G, S, D}, 2), Random({B, G, S, E}, 3), options, 0};
  ExpectSame(FallbackAttend(call)[kOut], DispatchAttend(call)[kOut], 1e-9, "causal");
  call.k.select(2, 4).fill_(kNan);
  call.v.select(2, 5).fill_(kNan);
  ExpectSame(FallbackAttend(call)[kOut], DispatchAttend(call)[kOut], 1e-9, "causal with NaN");
  call.options.causal = false;
  call.options.bias = Random({L, 1}, 4);
  call = MakeCall(call.options);
  ExpectSame(FallbackAttend(call)[kOut], DispatchAttend(call)[kOut], 1e-9, "bias");
}

TEST(Attend, EmptySizesGiveEmptyOrZeroResults) {
  for (std::int64_t dimension = 0; dimension < 6; ++dimension) {
    std::vector<std::int64_t> n{B, H, L, S, D, E};
    n[static_cast<std::size_t>(dimension)] = 0;
    const std::int64_t g = n[1] == 0 ? 0 : G;
    for (const auto& attend : {DispatchAttend, FallbackAttend}) {
      SCOPED_TRACE(dimension);
      AttendOptions options;
      options.return_lse = options.return_weights = true;
      const AttendCall call{Random({n[0], n[1], n[2], n[4]}, 1), Random({n[0], g, n[3], n[4]}, 2),
                            Random({n[0], g, n[3], n[5]}, 3), options, 0};
      const Trial run = TrialOf(attend, call);
      EXPECT_EQ(run.outputs[kOut].sizes(), (at::IntArrayRef{n[0], n[1], n[2], n[5]}));
      if (n[3] == 0) {
        EXPECT_TRUE(run.outputs[kOut].eq(0).all().item<bool>());
        EXPECT_TRUE(run.outputs[kLse].isneginf().all().item<bool>());
      }
      for (const Tensor& gradient : run.gradients) EXPECT_TRUE(gradient.isfinite().all().item<bool>());
    }
  }
}

// Case 17
TEST(Attend, WeightsAreThoseBeforeDropout) {
  AttendOptions options;
  options.dropout = 0.5;
  options.seed = 7;
  options.return_weights = true;
  const AttendCall call = MakeCall(options);
  const AttendResult dropped = Attend(call.q, call.k, call.v, options);
  EXPECT_TRUE(torch::allclose(dropped.weights.sum(-1), torch::ones({B, H, L}, torch::kDouble)));
  options.dropout = 0;
  const AttendResult plain = Attend(call.q, call.k, call.v, options);
  EXPECT_TRUE(torch::equal(dropped.weights, plain.weights));
  EXPECT_FALSE(torch::allclose(dropped.out, plain.out));
}

// Case 20
TEST(Attend, OnlyBiasNeedsAGradient) {
  AttendOptions options;
  options.bias = Random({H, 1, S}, 6).requires_grad_();
  const AttendCall call = MakeCall(options);
  const Tensor out = Attend(call.q, call.k, call.v, options).out;
  out.square().sum().backward();
  EXPECT_EQ(options.bias.grad().sizes(), options.bias.sizes());
  EXPECT_GT(options.bias.grad().abs().sum().item<double>(), 0);
  EXPECT_FALSE(call.q.grad().defined());
}

// Case 21
TEST(Attend, SameBitsOnOneThreadAndTwo) {
  AttendOptions options;
  options.dropout = 0.3;
  options.seed = 5;
  options.causal = true;
  const AttendCall call{Random({2, 4, 150, 8}, 1), Random({2, 2, 150, 8}, 2), Random({2, 2, 150, 8}, 3),
                        options, options.seed};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Trial one = TrialOf(DispatchAttend, call), again = TrialOf(DispatchAttend, call);
  at::set_num_threads(2);
  const Trial two = TrialOf(DispatchAttend, call);
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(one.outputs[kOut], again.outputs[kOut]));
  EXPECT_TRUE(torch::equal(one.outputs[kOut], two.outputs[kOut]));
  for (std::size_t n = 0; n < 3; ++n) EXPECT_TRUE(torch::equal(one.gradients[n], two.gradients[n])) << n;
}

// Case 13
TEST(Attend, SixteenBitInputsAreSummedInFloat32) {
  for (at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const Tensor q = (Random({1, 1, 4, 4}, 1) * 200).to(type), k = (Random({1, 1, 6, 4}, 2) * 130).to(type);
    const Tensor v = Random({1, 1, 6, 4}, 3).to(type).requires_grad_();
    AttendOptions options;
    options.score = ScoreKind::kDot;
    options.causal = options.return_lse = true;
    const AttendResult r = Attend(q, k, v, options);
    const AttendResult wide = Attend(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), options);
    EXPECT_EQ(r.out.scalar_type(), type);
    EXPECT_EQ(r.lse.scalar_type(), at::kFloat);
    EXPECT_TRUE(torch::equal(r.out, wide.out.to(type)));
    EXPECT_TRUE(torch::equal(r.lse, wide.lse));
    r.out.sum().backward();
    EXPECT_EQ(v.grad().scalar_type(), type);
    EXPECT_TRUE(v.grad().isfinite().all().item<bool>());
  }
}

TEST(Attend, MetaTensorsGiveShapes) {
  AttendOptions options;
  options.normalizer = NormalizerKind::kSample;
  options.return_lse = options.return_weights = true;
  const auto meta = [](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kMeta).requires_grad_(); };
  const Tensor q = meta({B, H, L, D});
  const AttendResult r = Attend(q, meta({B, G, S, D}), meta({B, G, S, E}), options);
  EXPECT_EQ(r.out.sizes(), (at::IntArrayRef{B, H, L, E}));
  EXPECT_EQ(r.weights.sizes(), (at::IntArrayRef{B, H, L, S}));
  EXPECT_EQ(r.log_prob.sizes(), (at::IntArrayRef{B, H, L}));
  EXPECT_EQ(r.index.scalar_type(), at::kLong);
  EXPECT_EQ(torch::autograd::grad({r.log_prob.sum()}, {q})[0].sizes(), q.sizes());
}

template <typename F>
std::string ErrorOf(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Attend, ErrorsNameTheArgument) {
  const Tensor q = torch::zeros({2, 3, 5, 4}), k = torch::zeros({2, 2, 6, 4}), v = torch::zeros({2, 2, 6, 4});
  AttendOptions options;
  EXPECT_THAT(ErrorOf([&] { Attend(q, k, v); }), HasSubstr("q has 3 heads and k has 2"));  // case 19
  EXPECT_THAT(ErrorOf([&] { Attend(q[0], k, v); }), HasSubstr("3, 4 and 4 dimensions"));
  EXPECT_THAT(ErrorOf([&] { Attend(k, k, v.to(torch::kDouble)); }), HasSubstr("v is Double and q is Float"));
  EXPECT_THAT(ErrorOf([&] { Attend(k, k, v.narrow(2, 0, 5)); }),
              HasSubstr("expected the same number of keys"));
  options.score = ScoreKind::kAdditive;
  EXPECT_THAT(ErrorOf([&] { Attend(k, k, v, options); }), HasSubstr("additive_weight is not given"));
  options = {};
  options.keep = torch::ones({6, 6});
  EXPECT_THAT(ErrorOf([&] { Attend(k, k, v, options); }), HasSubstr("keep is Float; expected bool"));
  options.keep = torch::ones({6, 5}, torch::kBool);
  EXPECT_THAT(ErrorOf([&] { Attend(k, k, v, options); }), HasSubstr("keep"));
  options = {};
  options.lengths = torch::tensor({1, 7});  // case 23
  EXPECT_THAT(ErrorOf([&] { Attend(k, k, v, options); }), HasSubstr("7"));
}

}  // namespace
}  // namespace regard::nn
