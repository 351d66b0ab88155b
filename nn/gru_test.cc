#include "nn/gru.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "nn/gru_kernels.h"

namespace regard::nn {
namespace {

using torch::Tensor;

Tensor Lengths(const std::vector<std::int64_t>& lengths) { return torch::tensor(lengths, torch::kInt64); }

struct Case {
  std::int64_t input, hidden, layers;
  bool bidirectional;
  torch::Dtype dtype;
  std::vector<std::int64_t> lengths;
};

class GruEqualsTorch : public testing::TestWithParam<Case> {};

// torch::nn::GRU on the same packed sequences, with the same weights: outputs and every gradient.
TEST_P(GruEqualsTorch, ForwardAndGradients) {
  const Case& c = GetParam();
  torch::manual_seed(1);
  const double tolerance = c.dtype == torch::kFloat64 ? 1e-12 : 2e-5;
  const auto n = static_cast<std::int64_t>(c.lengths.size());
  const std::int64_t d = c.bidirectional ? 2 : 1;
  const auto packing = Pack(Lengths(c.lengths), 9);

  Gru ours(c.input, c.hidden, c.layers, c.bidirectional, 0.0);
  ours->to(c.dtype);
  torch::nn::GRU theirs(
      torch::nn::GRUOptions(c.input, c.hidden).num_layers(c.layers).bidirectional(c.bidirectional));
  theirs->to(c.dtype);
  {
    torch::NoGradGuard guard;
    for (auto& p : theirs->named_parameters()) p.value().copy_(ours->named_parameters()[p.key()]);
  }
  const auto options = torch::TensorOptions().dtype(c.dtype);
  const Tensor x = torch::randn({packing.total, c.input}, options).requires_grad_();
  const Tensor h0 = torch::randn({c.layers * d, n, c.hidden}, options).requires_grad_();
  const Tensor x2 = x.detach().clone().requires_grad_(), h2 = h0.detach().clone().requires_grad_();

  const auto got = ours->forward(x, packing, h0, 0);
  const torch::nn::utils::rnn::PackedSequence sequence(x2, torch::tensor(packing.sizes, torch::kInt64));
  const auto want = theirs->forward_with_packed_input(sequence, h2);
  const Tensor want_output = std::get<0>(want).data(), want_state = std::get<1>(want);
  EXPECT_TRUE(torch::allclose(got.output, want_output, 0, tolerance));
  EXPECT_TRUE(torch::allclose(got.state, want_state, 0, tolerance));

  const Tensor a = torch::randn_like(want_output), b = torch::randn_like(want_state);
  ((got.output * a).sum() + (got.state * b).sum()).backward();
  ((want_output * a).sum() + (want_state * b).sum()).backward();
  EXPECT_TRUE(torch::allclose(x.grad(), x2.grad(), 1e-5, 10 * tolerance));
  EXPECT_TRUE(torch::allclose(h0.grad(), h2.grad(), 1e-5, 10 * tolerance));
  for (auto& p : theirs->named_parameters()) {
    EXPECT_TRUE(
        torch::allclose(ours->named_parameters()[p.key()].grad(), p.value().grad(), 1e-5, 10 * tolerance))
        << p.key();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GruEqualsTorch,
    testing::Values(
        Case{3, 4, 1, false, torch::kFloat64, {1}}, Case{3, 5, 2, false, torch::kFloat64, {4, 9, 1, 9}},
        Case{3, 5, 2, true, torch::kFloat64, {4, 9, 1, 9}},
        Case{32, 32, 2, false, torch::kFloat32, std::vector<std::int64_t>(40, 7)},
        Case{7, 37, 3, true, torch::kFloat64, {9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
        Case{7, 33, 2, true, torch::kFloat32, {9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9}}));

TEST(Gru, DropoutActsBetweenLayersWithTheMaskOfTheSeed) {
  torch::manual_seed(2);
  const auto packing = Pack(Lengths({5, 2, 4}), 5);
  Gru gru(3, 4, 2, false, 0.5);
  gru->to(torch::kFloat64);
  const Tensor x = torch::randn({packing.total, 3}, torch::kFloat64).requires_grad_();
  const auto all = gru->weights();
  const auto output = gru->forward(x, packing, {}, 7).output;
  output.square().sum().backward();
  std::vector<Tensor> grads{x.grad().clone()};
  x.mutable_grad().zero_();
  for (const auto& w : all) {
    grads.push_back(w.grad().clone());
    w.mutable_grad().zero_();
  }

  Tensor scales = torch::empty({packing.total, 4}, torch::kFloat64);
  DropoutScales(DeriveSeed(7, 1), 0.5, scales.numel(), scales.data_ptr<double>());
  const Tensor h0 = torch::zeros({1, 3, 4}, torch::kFloat64);
  const auto first = GruSequence(x, h0, {all.begin(), all.begin() + 4}, packing, {});
  const auto second = GruSequence(first.output * scales, h0, {all.begin() + 4, all.end()}, packing, {});
  EXPECT_TRUE(torch::equal(output, second.output));
  second.output.square().sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), grads[0], 1e-12, 1e-14));
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(torch::allclose(all[i].grad(), grads[i + 1], 1e-12, 1e-14)) << i;
  }

  EXPECT_TRUE(torch::equal(gru->forward(x, packing, {}, 7).output, output));
  EXPECT_FALSE(torch::equal(gru->forward(x, packing, {}, 8).output, output));
  gru->eval();
  EXPECT_TRUE(torch::equal(gru->forward(x, packing, {}, 7).output, gru->forward(x, packing, {}, 8).output));
}

// The final state and the outputs are those of the sequence alone, bit for bit, whatever is beside it.
// Text case 7.
TEST(Gru, ResultsDoNotDependOnTheBatch) {
  torch::manual_seed(3);
  torch::NoGradGuard guard;
  Gru gru(5, 33, 2, true, 0.0);
  const std::vector<std::int64_t> lengths{3, 8, 1, 8, 5, 2, 7, 4, 6, 6, 1, 2, 3, 4, 5, 6, 7, 8, 8};
  const Tensor padded = torch::randn({19, 8, 5});
  const auto packing = Pack(Lengths(lengths), 8);
  const auto batch = gru->forward(PackRows(padded, packing), packing, {}, 0);
  std::vector<std::int64_t> as_given(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) as_given[i] = static_cast<std::int64_t>(i);
  const Tensor outputs = UnpackRows(batch.output, packing, as_given);
  const Tensor states = ReorderRows(batch.state, packing, as_given);
  for (std::int64_t i = 0; i < 19; ++i) {
    const auto alone_packing = Pack(Lengths({lengths[i]}), lengths[i]);
    const auto alone = gru->forward(padded[i].slice(0, 0, lengths[i]), alone_packing, {}, 0);
    EXPECT_TRUE(torch::equal(outputs[i].slice(0, 0, lengths[i]), alone.output)) << i;
    EXPECT_EQ(outputs[i].slice(0, lengths[i]).abs().sum().item<double>(), 0) << i;
    EXPECT_TRUE(torch::equal(states.select(1, i), alone.state.select(1, 0))) << i;
  }
}

TEST(Gru, SequenceOfNothingKeepsItsState) {
  Gru gru(2, 3, 1, false, 0.0);
  const auto packing = Pack(Lengths({0, 2}), 2);
  const Tensor x = torch::randn({2, 2}), h0 = torch::randn({1, 2, 3}).requires_grad_();
  const auto result = gru->forward(x, packing, h0, 0);
  EXPECT_EQ(packing.order, (std::vector<std::int64_t>{1, 0}));
  EXPECT_TRUE(torch::equal(result.state[0][1], h0[0][1]));
  result.state.sum().backward();
  EXPECT_TRUE(torch::equal(h0.grad()[0][1], torch::ones({3})));
}

TEST(Gru, OneAndTwoThreadsGiveTheSameBits) {
  torch::manual_seed(4);
  Gru gru(64, 64, 2, false, 0.1);
  const auto packing = Pack(torch::randint(1, 20, {50}), 20);
  const Tensor x = torch::randn({packing.total, 64});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = gru->forward(x, packing, {}, 5);
  at::set_num_threads(2);
  const auto two = gru->forward(x, packing, {}, 5);
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(one.output, two.output));
  EXPECT_TRUE(torch::equal(one.state, two.state));
}

TEST(Packing, LengthOutOfRangeIsNamed) {
  try {
    Pack(Lengths({1, 4}), 3);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "lengths[1] is 4: expected 0 to 3");
  }
}

TEST(Packing, UnpackedRowsPassTheirGradientBack) {
  const auto packing = Pack(Lengths({1, 3, 2}), 3);
  const Tensor padded = torch::arange(18, torch::kFloat64).reshape({3, 3, 2});
  const Tensor x = PackRows(padded, packing).requires_grad_();
  const Tensor back = UnpackRows(x, packing, {2, 0, 1});
  EXPECT_TRUE(torch::equal(back[0].slice(0, 0, 2), padded[2].slice(0, 0, 2)));
  EXPECT_TRUE(torch::equal(back[2], padded[1]));
  EXPECT_EQ(back[1].slice(0, 1).abs().sum().item<double>(), 0);
  const Tensor weights = torch::randn({3, 3, 2}, torch::kFloat64);
  (back * weights).sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), PackRows(weights.index_select(0, torch::tensor({1, 2, 0})), packing)));
}

}  // namespace
}  // namespace regard::nn
