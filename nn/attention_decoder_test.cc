#include "nn/attention_decoder.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "nn/gru_kernels.h"
#include "regard/attention.h"

namespace regard::nn {
namespace {

using torch::Tensor;

struct Case {
  std::int64_t n, s, t, embed, hidden, layers;  // context and key widths differ from the rest
  torch::Dtype dtype;
  double dropout, attention_dropout;
};

// A random problem: sources of length 0 to s, targets of length 1 to t.
struct Problem {
  Case c;
  Packing packing;
  Tensor embeddings, keys, values, lengths, state;
  DecoderWeights weights;
  DecoderOptions options;

  explicit Problem(const Case& c_) : c(c_) {
    torch::manual_seed(11);
    const auto type = torch::TensorOptions().dtype(c.dtype);
    const auto variable = [&](at::IntArrayRef sizes, double scale) {
      return (torch::randn(sizes, type) * scale).set_requires_grad(true);
    };
    const std::int64_t context = c.hidden + 1, key = c.hidden + 2;
    packing = Pack(torch::randint(1, c.t + 1, {c.n}), c.t);
    embeddings = variable({packing.total, c.embed}, 1);
    keys = variable({c.n, c.s, key}, 1);
    values = variable({c.n, c.s, context}, 1);
    lengths = torch::randint(0, c.s + 1, {c.n});
    lengths[0] = 0;
    state = variable({c.layers, c.n, c.hidden}, 1);
    weights.query = variable({key, c.hidden}, 0.3);
    weights.score = variable({key}, 1);
    for (std::int64_t l = 0; l < c.layers; ++l) {
      weights.gru.push_back(variable({3 * c.hidden, l == 0 ? context + c.embed : c.hidden}, 0.3));
      weights.gru.push_back(variable({3 * c.hidden, c.hidden}, 0.3));
      weights.gru.push_back(variable({3 * c.hidden}, 0.3));
      weights.gru.push_back(variable({3 * c.hidden}, 0.3));
    }
    options.dropout = c.dropout;
    options.attention_dropout = c.attention_dropout;
    options.seed = 5;
    options.attention = true;
  }

  // The same numbers in float64.
  Problem Wide() const {
    Problem wide = *this;
    wide.c.dtype = torch::kFloat64;
    const auto convert = [](Tensor& x) { x = x.detach().to(torch::kFloat64).set_requires_grad(true); };
    for (Tensor* x : {&wide.embeddings, &wide.keys, &wide.values, &wide.state, &wide.weights.query,
                      &wide.weights.score}) {
      convert(*x);
    }
    for (Tensor& x : wide.weights.gru) convert(x);
    return wide;
  }

  std::vector<Tensor> Variables() const {
    std::vector<Tensor> all{embeddings, keys, values, state, weights.query, weights.score};
    all.insert(all.end(), weights.gru.begin(), weights.gru.end());
    return all;
  }
  DecoderInputs Inputs() const { return {embeddings, keys, values, lengths, state}; }
};

// What the dropout of step t multiplies the weights of the first `rows` rows with: [rows, S]. Read from the
// engine: with equal scores and one-hot values the output is 0 where it drops.
Tensor AttentionScales(const Problem& p, std::int64_t t, std::int64_t rows) {
  const std::int64_t s = p.c.s, block = 16;
  if (p.c.attention_dropout == 0) return torch::ones({rows, s}, torch::kFloat64);
  std::vector<Tensor> parts;
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t n = std::min(block, rows - begin);
    Tensor zeros = torch::zeros({n, s}, torch::kFloat64), out = torch::empty({n, s}, torch::kFloat64);
    Tensor eye = torch::eye(s, torch::kFloat64);
    AttentionOptions<double> options;
    options.score = Dot{0.0};
    options.dropout = {p.c.attention_dropout, AttentionStepSeed(p.options.seed, t, begin)};
    const double* z = zeros.data_ptr<double>();
    const auto status = AttentionForward<double>(
        options, {{z, {n, 1, 1, 1}}, {z, {n, 1, s, 1}}, {eye.data_ptr<double>(), {n, 1, s, s}, {0, 0, s, 1}}},
        {{out.data_ptr<double>(), {n, 1, 1, s}}, {}, {}, {}, {}});
    if (!status.ok()) throw Error(status.message());
    parts.push_back((out > 0).to(torch::kFloat64) / (1 - p.c.attention_dropout));
  }
  return torch::cat(parts);
}

// The same model in plain operations, step by step, row by row in packed order.
DecoderOutput Plain(const Problem& p) {
  const std::int64_t layers = p.c.layers;
  std::vector<Tensor> h = p.state.unbind(0), scales(layers), outputs, contexts, attentions;
  for (std::int64_t l = 1; l < layers; ++l) {
    scales[l] = torch::ones({p.packing.total, p.c.hidden}, p.state.options().requires_grad(false));
    if (p.c.dropout == 0) continue;
    if (p.c.dtype == torch::kFloat64) {
      DropoutScales(DeriveSeed(p.options.seed, l), p.c.dropout, scales[l].numel(),
                    scales[l].data_ptr<double>());
    } else {
      DropoutScales(DeriveSeed(p.options.seed, l), p.c.dropout, scales[l].numel(),
                    scales[l].data_ptr<float>());
    }
  }
  for (std::size_t t = 0; t < p.packing.sizes.size(); ++t) {
    const std::int64_t n = p.packing.sizes[t], at = p.packing.offsets[t];
    const auto step = [&](const Tensor& x) { return x.slice(0, at, at + n); };
    for (Tensor& x : h) x = x.slice(0, 0, n);
    const Tensor q = h.back().mm(p.weights.query.t());
    const Tensor score = torch::tanh(q.unsqueeze(1) + p.keys.slice(0, 0, n)).matmul(p.weights.score);
    const Tensor allowed = torch::arange(p.c.s).unsqueeze(0) < p.lengths.slice(0, 0, n).unsqueeze(1);
    Tensor a = torch::softmax(score.masked_fill(~allowed, -1e30), 1) * allowed.to(p.c.dtype);
    attentions.push_back(a);
    a = a * AttentionScales(p, static_cast<std::int64_t>(t), n).to(p.c.dtype);
    contexts.push_back(torch::bmm(a.unsqueeze(1), p.values.slice(0, 0, n)).squeeze(1));
    Tensor x = torch::cat({contexts.back(), step(p.embeddings)}, 1);
    for (std::int64_t l = 0; l < layers; ++l) {
      if (l > 0) x = x * step(scales[l]);
      const auto* w = &p.weights.gru[4 * l];
      h[l] = torch::gru_cell(x, h[l], w[0], w[1], w[2], w[3]);
      x = h[l];
    }
    outputs.push_back(x);
  }
  return {torch::cat(outputs), torch::cat(contexts), torch::cat(attentions)};
}

// The results of a pass and all its gradients, as float64.
std::vector<Tensor> Everything(const Problem& p, const DecoderOutput& out) {
  torch::manual_seed(12);
  const Tensor a = torch::randn(out.states.sizes(), torch::kFloat64).to(p.c.dtype);
  const Tensor b = torch::randn(out.contexts.sizes(), torch::kFloat64).to(p.c.dtype);
  std::vector<Tensor> all{out.states, out.contexts, out.attention};
  const auto grads =
      torch::autograd::grad({(out.states * a).sum() + (out.contexts * b).sum()}, p.Variables());
  all.insert(all.end(), grads.begin(), grads.end());
  for (Tensor& x : all) x = x.detach().to(torch::kFloat64);
  return all;
}

double Largest(const Tensor& x) { return x.numel() == 0 ? 0 : x.abs().max().item<double>(); }

class DecoderEqualsPlain : public testing::TestWithParam<Case> {};

// The error allowed is twice that of plain operations in the same type, against plain operations in float64.
TEST_P(DecoderEqualsPlain, ForwardAndGradients) {
  const Problem p(GetParam());
  const auto out = DecodeSequence(p.Inputs(), p.weights, p.packing, p.options);
  EXPECT_FALSE(out.attention.requires_grad());
  const auto got = Everything(p, out), plain = Everything(p, Plain(p));
  const Problem wide = p.Wide();
  const auto exact = Everything(wide, Plain(wide));
  const double eps = p.c.dtype == torch::kFloat64 ? 2e-16 : 1e-7;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double allowed = 2 * Largest(plain[i] - exact[i]) + 50 * eps * Largest(exact[i]);
    EXPECT_LE(Largest(got[i] - exact[i]), allowed) << "tensor " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DecoderEqualsPlain,
                         testing::Values(Case{1, 1, 1, 1, 1, 1, torch::kFloat64, 0, 0},
                                         Case{4, 5, 6, 3, 7, 1, torch::kFloat64, 0, 0},
                                         Case{4, 5, 6, 3, 7, 2, torch::kFloat64, 0.4, 0},
                                         Case{37, 5, 4, 3, 6, 3, torch::kFloat64, 0.3, 0.3},
                                         Case{37, 10, 9, 32, 32, 2, torch::kFloat32, 0.1, 0.1},
                                         Case{20, 40, 9, 32, 65, 2, torch::kFloat32, 0, 0}));

TEST(AttentionDecoder, SourceOfLengthZeroHasNoContext) {
  const Problem p(Case{3, 4, 2, 3, 5, 1, torch::kFloat32, 0, 0});
  const auto got = DecodeSequence(p.Inputs(), p.weights, p.packing, p.options);
  EXPECT_EQ(got.contexts[0].abs().sum().item<double>(), 0);
  EXPECT_EQ(got.attention[0].abs().sum().item<double>(), 0);
}

// NaN in a key or value past a source's length changes nothing, in the results or a gradient.
TEST(AttentionDecoder, PaddingDoesNotExist) {
  Problem p(Case{6, 8, 5, 3, 9, 2, torch::kFloat32, 0.2, 0.2});
  const auto run = [&] {
    const auto out = DecodeSequence(p.Inputs(), p.weights, p.packing, p.options);
    auto all = torch::autograd::grad({out.states.square().sum()}, p.Variables());
    all.push_back(out.states.detach());
    return all;
  };
  const auto clean = run();
  {
    torch::NoGradGuard guard;
    for (std::int64_t i = 0; i < 6; ++i) {
      p.keys[i].slice(0, p.lengths[i].item<std::int64_t>()).fill_(NAN);
      p.values[i].slice(0, p.lengths[i].item<std::int64_t>()).fill_(NAN);
    }
  }
  const auto dirty = run();
  for (std::size_t i = 0; i < clean.size(); ++i) EXPECT_TRUE(torch::equal(clean[i], dirty[i])) << i;
}

TEST(AttentionDecoder, TheSameSeedAndAnyThreadsGiveTheSameBits) {
  Problem p(Case{50, 9, 8, 33, 64, 2, torch::kFloat32, 0.3, 0.3});
  const int threads = at::get_num_threads();
  const auto run = [&](int n, std::uint64_t seed) {
    at::set_num_threads(n);
    p.options.seed = seed;
    const auto out = DecodeSequence(p.Inputs(), p.weights, p.packing, p.options);
    const auto grads =
        torch::autograd::grad({out.states.square().sum()}, {p.embeddings, p.keys, p.weights.score});
    at::set_num_threads(threads);
    return std::vector<Tensor>{out.states, grads[1], grads[2]};
  };
  const auto one = run(1, 3), two = run(2, 3), other = run(2, 4);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(torch::equal(one[i], two[i])) << i;
  EXPECT_FALSE(torch::equal(two[0], other[0]));
}

// Steps of groups of rows that share a source are the teacher-forced pass.
TEST(AttentionDecoder, StepsEqualTheSequence) {
  Problem p(Case{5, 6, 4, 3, 33, 2, torch::kFloat32, 0, 0});
  torch::NoGradGuard guard;
  p.packing = Pack(torch::full({5}, 4, torch::kInt64), 4);
  p.embeddings = torch::randn({20, 3});
  const auto want = DecodeSequence(p.Inputs(), p.weights, p.packing, p.options);
  DecoderStepper stepper(p.weights, p.values.size(2));
  const std::int64_t group = 3;
  Tensor state = p.state.repeat_interleave(group, 1).contiguous();
  for (std::int64_t t = 0; t < 4; ++t) {
    const Tensor y = p.embeddings.slice(0, 5 * t, 5 * t + 5).repeat_interleave(group, 0);
    const auto got = stepper.Step({y, p.keys, p.values, p.lengths, state}, group, true);
    for (std::int64_t g = 0; g < group; ++g) {
      const auto pick = [&](const Tensor& x) { return x.unflatten(0, {5, group}).select(1, g); };
      EXPECT_TRUE(torch::allclose(pick(got.states), want.states.slice(0, 5 * t, 5 * t + 5), 0, 1e-6));
      EXPECT_TRUE(torch::allclose(pick(got.contexts), want.contexts.slice(0, 5 * t, 5 * t + 5), 0, 1e-6));
      EXPECT_TRUE(torch::allclose(pick(got.attention), want.attention.slice(0, 5 * t, 5 * t + 5), 0, 1e-6));
    }
  }
}

TEST(AttentionDecoder, AGraphIsFreedWithItsResult) {
  const Problem p(Case{3, 4, 2, 3, 5, 2, torch::kFloat32, 0, 0});
  c10::weak_intrusive_ptr<c10::TensorImpl> kept(p.embeddings.getIntrusivePtr());
  {
    const Tensor y = p.embeddings * 2;
    kept = c10::weak_intrusive_ptr<c10::TensorImpl>(y.getIntrusivePtr());
    auto inputs = p.Inputs();
    inputs.embeddings = y;
    DecodeSequence(inputs, p.weights, p.packing, p.options);
  }
  EXPECT_TRUE(kept.expired());
}

TEST(AttentionDecoder, SizesThatDoNotFitAreNamed) {
  const Problem p(Case{3, 4, 2, 3, 5, 1, torch::kFloat32, 0, 0});
  auto inputs = p.Inputs();
  inputs.keys = torch::zeros({3, 4, 6});
  try {
    DecodeSequence(inputs, p.weights, p.packing, p.options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "attention decoder: keys is [3, 4, 6]: expected [3, 4, 7]");
  }
}

}  // namespace
}  // namespace regard::nn
