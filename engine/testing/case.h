// One attention call with all its tensors, for tests.
#ifndef REGARD_ENGINE_TESTING_CASE_H_
#define REGARD_ENGINE_TESTING_CASE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "engine/testing/tensor.h"
#include "regard/attention.h"

namespace regard::engine {

enum class TestScore {
  kScaledDot,
  kDot,
  kCosine,
  kAdditive,
  kAdditivePerHead,
  kGaussian,
  kGaussianPerDimension,
  kBoxcar,
  kTriangular,
  kEpanechnikov,
  kTricube,
  kTricubePerDimension,
  kOwnAdditive,  // a CustomScore that repeats kAdditivePerHead
  kOwnDot,       // and one without w, that repeats kDot
};
enum class TestMask {
  kNone,
  kCausal,
  kCausalBottomRight,
  kWindow,
  kWindowOneSided,
  kLengths,
  kLengthsPerQuery,
  kSegments,
  kBlocks,
  kKeep,
  kKeepRow,  // one row for all queries
  kExcludeSelf,
  kMany,  // all of them at once
};

struct Spec {
  std::int64_t B = 2, H = 4, G = 2, L = 5, S = 7, D = 6, E = 3;
  TestScore score = TestScore::kScaledDot;
  TestMask mask = TestMask::kNone;
  Normalizer normalizer = Softmax{};
  double softcap = 0;  // 0: none
  std::optional<std::array<std::int64_t, 4>> bias_shape =
      std::nullopt;  // sizes 1 are kept, the others are B, H, L, S
  bool alibi = false;
  double dropout = 0;
  bool want_weights = true;  // and their gradient
  bool upstream_lse = false;
  Layout layout = Layout::kContiguous;
  double scale = 1;  // of q and k
  double drift = 0;  // of their first dimension, from the first row to the last
  std::uint64_t seed = 1;

  std::string Text() const;
};

template <typename T>
struct Case {
  using Sum = SumType<T>;

  explicit Case(const Spec& spec);

  Spec spec;
  AttentionOptions<Sum> options;

  Tensor<T, 4> q, k, v;
  Tensor<Sum, 4> bias;
  Tensor<Sum, 2> w;
  Tensor<Sum, 1> precision, slopes;
  Tensor<std::int64_t, 2> lengths, query_segments, key_segments;
  Tensor<bool, 4> block_map, keep;

  Tensor<T, 4> out, weights;
  Tensor<Sum, 3> lse, log_prob;
  Tensor<std::int64_t, 3> index;

  Tensor<T, 4> dout, dweights;
  Tensor<Sum, 3> dlse, dlog_prob;

  Tensor<T, 4> dq, dk, dv;
  Tensor<Sum, 4> dbias;
  Tensor<Sum, 2> dw;
  Tensor<Sum, 1> dprecision;

  bool soft() const { return std::holds_alternative<Softmax>(spec.normalizer); }
  AttentionInputs<T> Inputs() const { return {q.view(), k.view(), v.view()}; }
  AttentionOutputs<T> Outputs() const;
  AttentionUpstream<T> Upstream() const;
  AttentionGradients<T> Gradients() const;

  Status Forward() const { return AttentionForward(options, Inputs(), Outputs()); }
  Status Backward() const { return AttentionBackward(options, Inputs(), Upstream(), Gradients()); }
  // Both; a failure is a failure of the test.
  void Run() const;

  // The options with a built-in score where they have a caller's that repeats it.
  AttentionOptions<Sum> BuiltIn() const;

  // Every number that the passes wrote, as bytes.
  std::string Bits() const;
};

extern template struct Case<float>;
extern template struct Case<double>;
extern template struct Case<BFloat16>;
extern template struct Case<Float16>;

// Runs the case, and checks every result against the reference in float64. In float32 the error may be at
// most twice that of the formula written out in float32 (and of one rounding of the result); in float64, as
// much less as its rounding is finer. With 16-bit storage a result may also be rounded once to it; and where
// the formula of a gradient takes `out`, that is the one as stored.
template <typename T>
void CheckAgainstReference(const Spec& spec);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_TESTING_CASE_H_
