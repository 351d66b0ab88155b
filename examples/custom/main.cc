// Attention with three formulas of this program's own: a score that is a sum over the dimensions; scores that
// fall with the distance, as in ALiBi, but at a slope that is learned, one for each head; and several
// documents in one sequence, none of which sees another. The slopes are found again from the output of
// attention with regard's own Gaussian score, ALiBi and segments.
#include <regard/attention.h>
#include <regard/custom.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

// What one dimension adds to a score, each with a weight of its own.
struct SquaredDistance {
  auto operator()(auto q, auto k, auto w) const { return -0.5f * w * w * (q - k) * (q - k); }
};

// s - slope |j - i|. Written for the value; its derivatives by s and by the slope follow.
struct LearnedAlibi {
  static constexpr int kParameters = 1;
  auto operator()(auto s, const auto& at, const auto& slope) const {
    return s - slope[0] * regard::Abs(at.offset);
  }
};

// A query sees the keys of its own document.
struct SameDocument {
  const std::int64_t* document;  // of each token
  bool operator()(const regard::Pair& at) const { return document[at.i] == document[at.j]; }
};

constexpr std::int64_t kHeads = 2, kTokens = 300, kWidth = 16;

// [1, heads, tokens, width], with numbers that look like noise.
struct Tensor {
  explicit Tensor(float seed) {
    for (std::size_t n = 0; n < values.size(); ++n) {
      values[n] = std::sin(seed * static_cast<float>(n * n % 9973));
    }
  }
  regard::TensorView<float, 4> view() { return {values.data(), {1, kHeads, kTokens, kWidth}}; }

  std::vector<float> values = std::vector<float>(kHeads * kTokens * kWidth);
};

void Check(const regard::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

}  // namespace

int main() {
  Tensor q(0.3f), k(0.7f), v(1.1f), target(0), out(0), dout(0);
  const regard::AttentionInputs<float> inputs{q.view(), k.view(), v.view()};
  std::vector<std::int64_t> document(kTokens);
  for (std::size_t i = 0; i < document.size(); ++i) document[i] = i < 70 ? 0 : i < 160 ? 1 : 2;

  // What is to be learned.
  const std::vector<float> true_slopes = {0.5f, 0.125f}, precision = {0.25f};
  const regard::TensorView<const std::int64_t, 2> segments(document.data(), {1, kTokens});
  regard::AttentionOptions<float> own;
  own.score = regard::Gaussian<float>{{precision.data(), {1}}};
  own.mask.causal = regard::Causal{};
  own.mask.segments = regard::Segments{segments, segments};
  own.alibi = regard::Alibi<float>{{true_slopes.data(), {kHeads}}};
  regard::AttentionOutputs<float> outputs;
  outputs.out = target.view();
  Check(regard::AttentionForward(own, inputs, outputs));

  // The same from this program's formulas, with slopes that are wrong.
  std::vector<float> slopes(kHeads, 0.0f), dslopes(kHeads), lse(kHeads * kTokens);
  const std::vector<float> w(kWidth, precision[0]);
  regard::AttentionOptions<float> options;
  options.score = regard::CustomScore<float>(SquaredDistance{}, {w.data(), {1, kWidth}});
  options.mask.causal = regard::Causal{};
  options.mask.custom = regard::CustomMask(SameDocument{document.data()});
  options.change = regard::CustomChange<float>(LearnedAlibi{}, {slopes.data(), {kHeads, 1}});

  outputs.out = out.view();
  outputs.lse = regard::TensorView<float, 3>(lse.data(), {1, kHeads, kTokens});
  regard::AttentionUpstream<float> upstream;
  upstream.out = out.view();
  upstream.lse = *outputs.lse;
  upstream.dout = dout.view();
  regard::AttentionGradients<float> gradients;  // of q, k, v and w as well, if they are given
  gradients.dchange = regard::TensorView<float, 2>(dslopes.data(), {kHeads, 1});

  for (int step = 0; step <= 40; ++step) {
    Check(regard::AttentionForward(options, inputs, outputs));
    double loss = 0;  // half the squared distance from the target
    for (std::size_t n = 0; n < out.values.size(); ++n) {
      dout.values[n] = out.values[n] - target.values[n];
      loss += 0.5 * dout.values[n] * dout.values[n];
    }
    if (step % 10 == 0)
      std::printf("step %2d  loss %8.4f  slopes %.3f %.3f\n", step, loss, slopes[0], slopes[1]);
    Check(regard::AttentionBackward(options, inputs, upstream, gradients));
    for (std::size_t h = 0; h < slopes.size(); ++h) slopes[h] -= 0.0002f * dslopes[h];
  }
  return 0;
}
