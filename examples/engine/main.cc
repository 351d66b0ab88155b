// Causal attention over four tokens with one head, and its gradients, on memory that this program owns.
#include <regard/attention.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

// One batch, one head: [1, 1, rows, width].
struct Matrix {
  Matrix(std::int64_t rows_, std::int64_t width_)
      : rows(rows_), width(width_), values(static_cast<std::size_t>(rows * width)) {}

  regard::TensorView<float, 4> view() { return {values.data(), {1, 1, rows, width}}; }

  std::int64_t rows, width;
  std::vector<float> values;
};

Matrix Wave(std::int64_t rows, std::int64_t width, float step) {
  Matrix m(rows, width);
  for (std::size_t n = 0; n < m.values.size(); ++n) m.values[n] = std::sin(step * static_cast<float>(n));
  return m;
}

}  // namespace

int main() {
  constexpr std::int64_t kTokens = 4, kWidth = 8;
  Matrix q = Wave(kTokens, kWidth, 0.3f), k = Wave(kTokens, kWidth, 0.7f), v = Wave(kTokens, kWidth, 1.1f);
  Matrix out(kTokens, kWidth), weights(kTokens, kTokens);
  std::vector<float> lse(kTokens);

  regard::AttentionOptions<float> options;  // scaled dot product and softmax, unless told otherwise
  options.mask.causal = regard::Causal{};

  regard::AttentionInputs<float> inputs{q.view(), k.view(), v.view()};
  regard::AttentionOutputs<float> outputs;
  outputs.out = out.view();
  outputs.weights = weights.view();
  outputs.lse = regard::TensorView<float, 3>(lse.data(), {1, 1, kTokens});
  if (regard::Status status = regard::AttentionForward(options, inputs, outputs); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  std::printf("on %s\n", regard::InstructionSet());
  for (std::int64_t i = 0; i < kTokens; ++i) {
    std::printf("query %d attends to ", static_cast<int>(i));
    for (std::int64_t j = 0; j < kTokens; ++j) std::printf(" %.3f", weights.view()(0, 0, i, j));
    std::printf("\n");
  }

  // The gradient of the sum of all outputs: dout is 1 everywhere, one number expanded by strides of 0.
  const float one = 1;
  Matrix dq(kTokens, kWidth), dk(kTokens, kWidth), dv(kTokens, kWidth);
  regard::AttentionUpstream<float> upstream;
  upstream.out = out.view();
  upstream.lse = *outputs.lse;
  upstream.dout = regard::TensorView<const float, 4>(&one, {1, 1, kTokens, kWidth}, {0, 0, 0, 0});
  regard::AttentionGradients<float> gradients;
  gradients.dq = dq.view();
  gradients.dk = dk.view();
  gradients.dv = dv.view();
  if (regard::Status status = regard::AttentionBackward(options, inputs, upstream, gradients); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  // Value 0 is seen by every query, value 3 by the last alone.
  std::printf("dv of value 0: %.3f, of value 3: %.3f\n", dv.view()(0, 0, 0, 0), dv.view()(0, 0, 3, 0));

  // What does not fit together is said, not guessed: two key heads for one query head.
  inputs.k = inputs.v = regard::TensorView<const float, 4>(k.values.data(), {1, 2, 2, kWidth});
  std::printf("wrong: %s\n", regard::AttentionForward(options, inputs, outputs).message().c_str());
  return 0;
}
