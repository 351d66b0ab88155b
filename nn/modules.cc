#include "nn/modules.h"

#include <limits>

#include "engine/base/error.h"
#include "nn/run_attend.h"

namespace regard::nn {
namespace internal {

double CheckedDropout(double probability) {
  if (probability >= 0 && probability < 1) return probability;
  throw Error("dropout is " + std::to_string(probability) + "; expected 0 <= dropout < 1");
}

std::int64_t DrawSeed() {
  return torch::randint(std::numeric_limits<std::int64_t>::max(), {1}, torch::kLong).item<std::int64_t>();
}

Context RunAttend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                  AttendOptions options, double dropout, bool training) {
  if (training && dropout > 0) {
    options.dropout = dropout;
    options.seed = DrawSeed();
  }
  const AttendResult result = Attend(q, k, v, options);
  return {result.out, result.weights};
}

}  // namespace internal

using internal::RunAttend;

torch::Tensor MaskedSoftmax(const torch::Tensor& scores, const torch::Tensor& lengths) {
  if (!lengths.defined()) return torch::softmax(scores, -1);
  const bool per_batch = lengths.dim() == 1;
  const auto batch_sizes = scores.sizes().slice(0, per_batch ? 1 : 2);
  if (scores.dim() != 3 || lengths.sizes() != batch_sizes) {
    throw Error(c10::str("lengths has shape ", lengths.sizes(), " for scores of shape ", scores.sizes(),
                         "; expected scores [B, L, S] and lengths [B] or [B, L]"));
  }
  const auto keys = torch::arange(scores.size(2), lengths.options());
  const auto past = keys >= (per_batch ? lengths.view({-1, 1, 1}) : lengths.unsqueeze(2));
  // _safe_softmax gives 0 in a row of -inf alone, and a gradient of 0.
  return at::_safe_softmax(scores.masked_fill(past, -std::numeric_limits<double>::infinity()), -1);
}

AdditiveAttentionImpl::AdditiveAttentionImpl(std::int64_t query_size, std::int64_t key_size,
                                             std::int64_t hidden_size, double dropout)
    : dropout_(internal::CheckedDropout(dropout)) {
  const auto linear = [](std::int64_t in, std::int64_t out) {
    return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false));
  };
  W_q = register_module("W_q", linear(query_size, hidden_size));
  W_k = register_module("W_k", linear(key_size, hidden_size));
  w_v = register_module("w_v", linear(hidden_size, 1));
}

Context AdditiveAttentionImpl::forward(const torch::Tensor& queries, const torch::Tensor& keys,
                                       const torch::Tensor& values, const torch::Tensor& lengths,
                                       bool return_weights) {
  return Attend(queries, ProjectKeys(keys), values, lengths, return_weights);
}

torch::Tensor AdditiveAttentionImpl::ProjectKeys(const torch::Tensor& keys) { return W_k(keys); }

Context AdditiveAttentionImpl::Attend(const torch::Tensor& queries, const torch::Tensor& projected_keys,
                                      const torch::Tensor& values, const torch::Tensor& lengths,
                                      bool return_weights) {
  AttendOptions options;
  options.score = ScoreKind::kAdditive;
  options.additive_weight = w_v->weight;
  options.lengths = lengths;
  options.return_weights = return_weights;
  return RunAttend(W_q(queries), projected_keys, values, options, dropout_, is_training());
}

void AdditiveAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "regard::nn::AdditiveAttention(query_size=" << W_q->options.in_features()
         << ", key_size=" << W_k->options.in_features() << ", hidden_size=" << W_q->options.out_features()
         << ", dropout=" << dropout_ << ")";
}

DotProductAttentionImpl::DotProductAttentionImpl(double dropout)
    : dropout_(internal::CheckedDropout(dropout)) {}

Context DotProductAttentionImpl::forward(const torch::Tensor& queries, const torch::Tensor& keys,
                                         const torch::Tensor& values, const torch::Tensor& lengths,
                                         bool return_weights) {
  AttendOptions options;
  options.lengths = lengths;
  options.return_weights = return_weights;
  return RunAttend(queries, keys, values, options, dropout_, is_training());
}

void DotProductAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "regard::nn::DotProductAttention(dropout=" << dropout_ << ")";
}

}  // namespace regard::nn
