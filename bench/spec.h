// What a row of the benchmark computes.
#ifndef REGARD_BENCH_SPEC_H_
#define REGARD_BENCH_SPEC_H_

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace regard::bench {

enum class ScoreKind { kScaledDot, kAdditive, kGaussian };
enum class Pass { kForward, kBackward, kBoth };

// One attention call: sizes as in regard/attention.h.
struct Spec {
  std::int64_t B = 1, H = 1, L = 1, D = 1;
  std::int64_t G = 0;  // 0: H
  std::int64_t S = 0;  // 0: L
  std::int64_t E = 0;  // 0: D
  ScoreKind score = ScoreKind::kScaledDot;
  Pass pass = Pass::kForward;
  at::ScalarType type = at::kFloat;
  bool causal = false;
  std::optional<std::int64_t> window;  // keys seen on each side
  std::vector<std::int64_t> lengths;   // keys of each batch; empty: all S
  double dropout = 0;

  std::int64_t key_heads() const { return G == 0 ? H : G; }
  std::int64_t keys() const { return S == 0 ? L : S; }
  std::int64_t value_width() const { return E == 0 ? D : E; }
  bool has_forward() const { return pass != Pass::kBackward; }
  bool has_backward() const { return pass != Pass::kForward; }
};

// "1, 8, 4096, 64; causal; backward"
std::string Describe(const Spec& spec);

// Pairs of query and key that the mask allows, over all heads.
double AllowedPairs(const Spec& spec);

// Useful operations of a call: a multiply-add counts two, tanh one, and exp none, as it is one a pair.
//   dot       forward 2 (D + E) a pair, backward 2 (3 D + 2 E): the scores once more, dp, dv, dq, dk
//   additive  forward 4 D + 2 E (sum, tanh, multiply-add),
//             backward 8 D + 4 E (the hidden values once more, their derivative, the sums for dq, dk and dw)
//   Gaussian  forward 3 D + 2 E (difference, multiply-add), backward 8 D + 4 E
double UsefulWork(const Spec& spec);

// Bytes of q, k, v and out, and for a backward pass of dout, dq, dk and dv.
double TensorBytes(const Spec& spec);

// Inputs, drawn with a fixed seed: normal, or for Gaussian scores even in [0, 1). `parameter` is additive
// attention's w [D], drawn from a normal of width 1 / sqrt(D), or the Gaussian's precision [1], 10 / sqrt(D).
struct Tensors {
  at::Tensor q, k, v;    // [B, H, L, D], [B, G, S, D], [B, G, S, E]
  at::Tensor parameter;  // undefined for dot scores
  at::Tensor dout;       // [B, H, L, E]
  at::Tensor lengths;    // int64 [B], or undefined

  Tensors To(at::ScalarType type) const;
};
Tensors MakeTensors(const Spec& spec);

// What a call gave, in the order out, dq, dk, dv, dparameter, as far as its pass has them.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
using Results = std::vector<NamedTensor>;

}  // namespace regard::bench

#endif  // REGARD_BENCH_SPEC_H_
