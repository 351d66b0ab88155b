// regard::attend for libtorch: attention with any score, mask and normaliser, with autograd.
//
//   s_ij = score(q_i, k_j), then softcap, then bias, then ALiBi
//   p_i. = normalise_j { s_ij : the mask allows (i, j) }
//   o_i  = sum_j dropout(p_ij) v_j
//
// On the CPU the fused engine computes it, without memory in proportion to L S; on any other device ATen
// operations do, by the same contract: a query that may see no key gives 0, what is masked has no effect.
#ifndef REGARD_NN_ATTEND_H_
#define REGARD_NN_ATTEND_H_

#include <torch/types.h>

#include <cstdint>
#include <optional>

#include "regard/score.h"

namespace regard::nn {

// The formulas are in regard/score.h and regard/normalizer.h.
enum class ScoreKind {
  kScaledDot,
  kDot,
  kCosine,
  kAdditive,
  kGaussian,
  kBoxcar,  // the compact kernels, in the order of CompactKernel
  kTriangular,
  kEpanechnikov,
  kTricube,
};
enum class NormalizerKind { kSoftmax, kArgmax, kSample };

// An undefined tensor is an option that is not given. Gradients reach bias, additive_weight and precision.
// Shapes are those of [B, H, L, S] attention; bias, keep and blocks may leave out leading dimensions or have
// 1 in place of a size (broadcasting).
struct AttendOptions {
  ScoreKind score = ScoreKind::kScaledDot;
  std::optional<double> scale{};    // of kScaledDot (else 1 / sqrt(D)), kDot and kCosine (else 1)
  double eps = 1e-8;                // of kCosine
  torch::Tensor additive_weight{};  // [D] or [H, D]: needed by kAdditive
  torch::Tensor precision{};        // [], [1] or [D]: needed by kGaussian and the compact kernels
  std::optional<double> softcap{};  // c > 0: s becomes c tanh(s / c)
  torch::Tensor bias{};             // [B, H, L, S]
  torch::Tensor alibi_slopes{};     // [H]

  // Masks: every one that is given must allow a pair.
  Corner corner = Corner::kTopLeft;           // of causal, window and ALiBi: the key that query 0 stands at
  bool causal = false;                        // j <= i'
  std::optional<std::int64_t> window_left{};  // -left <= j - i' <= right
  std::optional<std::int64_t> window_right{};
  torch::Tensor lengths{};         // integer [B], or [B, L]: j < n
  torch::Tensor query_segments{};  // integer [L] or [B, L], and
  torch::Tensor key_segments{};    // integer [S] or [B, S]: equal numbers see each other
  torch::Tensor blocks{};          // bool [B, H, ceil(L / block_queries), ceil(S / block_keys)]
  std::int64_t block_queries = 0;  // queries and keys in a block of `blocks`
  std::int64_t block_keys = 0;
  torch::Tensor keep{};       // bool [B, H, L, S]: true takes part
  bool exclude_self = false;  // j != i

  NormalizerKind normalizer = NormalizerKind::kSoftmax;
  double dropout = 0.0;   // 0 <= p < 1, of the weights, whether training or not
  std::int64_t seed = 0;  // of dropout and kSample: the same seed gives the same draws

  bool return_lse = false;
  bool return_weights = false;
};

// What was not asked for is undefined.
struct AttendResult {
  torch::Tensor out;       // [B, H, L, E]
  torch::Tensor lse;       // [B, H, L]: log sum_j exp(s_ij); float32 for 16-bit inputs
  torch::Tensor weights;   // [B, H, L, S], before dropout
  torch::Tensor index;     // int64 [B, H, L]: the key that kArgmax or kSample chose, -1 where there is none
  torch::Tensor log_prob;  // [B, H, L]: log softmax of that key, with a gradient
};

// q [B, H, L, D], k [B, G, S, D], v [B, G, S, E] with H % G == 0, of one floating type, any strides. Tensors
// of rank 3 have no head dimension, those of rank 2 no batch either; nor have bias, keep, blocks and the
// results then. Throws regard::Error naming an argument that does not fit.
AttendResult Attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                    const AttendOptions& options = {});

}  // namespace regard::nn

#endif  // REGARD_NN_ATTEND_H_
