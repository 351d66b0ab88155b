#include "nn/transformer_layers.h"

#include "engine/base/error.h"
#include "nn/activation.h"
#include "nn/dropout.h"
#include "nn/gru_kernels.h"
#include "nn/run_attend.h"

namespace regard::nn {
namespace {

using torch::Tensor;

// What a layer's seed is derived for.
enum Use : std::uint64_t { kSelfWeights = 1, kSelf, kCrossWeights, kCross, kFfn };

// 0 asks the attention to draw its own.
std::int64_t AttentionSeed(std::uint64_t seed, Use use) {
  return static_cast<std::int64_t>(DeriveSeed(seed, use) >> 1 | 1);
}

}  // namespace

NormImpl::NormImpl(std::int64_t width, bool with_bias, double eps) : eps_(eps) {
  weight = register_parameter("weight", torch::ones({width}));
  if (with_bias) bias = register_parameter("bias", torch::zeros({width}));
}

Tensor NormImpl::forward(const Tensor& x) {
  return torch::layer_norm(x, weight.sizes(), weight, bias, eps_, /*cudnn_enable=*/false);
}

TransformerLayerImpl::TransformerLayerImpl(const TransformerLayerOptions& options) : options_(options) {
  TransformerLayerOptions& o = options_;
  internal::CheckedDropout(o.dropout);
  if (o.ffn_dim == 0) o.ffn_dim = 4 * o.embed_dim;
  if (o.ffn_dim < 1) throw Error(c10::str("ffn_dim is ", o.ffn_dim, "; expected 1 or more"));
  MultiHeadOptions attention{.embed_dim = o.embed_dim,
                             .num_heads = o.num_heads,
                             .num_key_heads = o.num_key_heads,
                             .bias = o.bias,
                             .dropout = o.attention_dropout};
  const auto norm = [&](const char* name) { return register_module(name, Norm(o.embed_dim, o.bias)); };
  const auto linear = [&](const char* name, std::int64_t in, std::int64_t out) {
    return register_module(name, torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(o.bias)));
  };
  self_norm = norm("self_norm");
  self_attention = register_module("self_attention", MultiHeadAttention(attention));
  if (o.memory_size > 0) {
    attention.key_size = attention.value_size = o.memory_size;
    cross_norm = norm("cross_norm");
    cross_attention = register_module("cross_attention", MultiHeadAttention(attention));
  }
  ffn_norm = norm("ffn_norm");
  ffn_in = linear("ffn_in", o.embed_dim, o.ffn_dim);
  ffn_out = linear("ffn_out", o.ffn_dim, o.embed_dim);
}

Tensor TransformerLayerImpl::Add(const Tensor& residual, const Tensor& x, torch::nn::Linear& linear,
                                 Norm& norm, std::uint64_t seed) {
  Tensor sum;
  if (is_training() && options_.dropout > 0) {
    sum = residual + Dropout(linear->forward(x), options_.dropout, seed);
  } else if (!torch::GradMode::is_enabled()) {
    sum = linear->forward(x).add_(residual);
  } else {  // added by the product itself
    sum = torch::addmm(residual.flatten(0, 1), x.flatten(0, 1), linear->weight.t());
    if (options_.bias) sum.add_(linear->bias);
    sum = sum.view(residual.sizes());
  }
  return options_.pre_norm ? sum : norm(sum);
}

KeyValues TransformerLayerImpl::ProjectMemory(const Tensor& memory) {
  if (!cross_attention) throw Error("a memory is given to a layer without attention to one");
  return cross_attention->ProjectKeys(memory, memory);
}

LayerResult TransformerLayerImpl::forward(const Tensor& x, const LayerCall& call) {
  const auto before = [&](Norm& norm, const Tensor& y) { return options_.pre_norm ? norm(y) : y; };
  AttendOptions self = call.self, cross = call.cross;
  self.seed = AttentionSeed(call.seed, kSelfWeights);
  cross.seed = AttentionSeed(call.seed, kCrossWeights);
  LayerResult result;
  const Context heads = self_attention->SelfHeads(before(self_norm, x), self, call.cache);
  result.self_weights = heads.weights;
  result.x = Add(x, heads.context, self_attention->out_proj, self_norm, DeriveSeed(call.seed, kSelf));
  if (cross_attention) {
    if (call.memory == nullptr) throw Error("no memory is given to a layer that attends to one");
    const Context read = cross_attention->HeadsOf(before(cross_norm, result.x), *call.memory, cross);
    result.cross_weights = read.weights;
    result.x =
        Add(result.x, read.context, cross_attention->out_proj, cross_norm, DeriveSeed(call.seed, kCross));
  }
  const Tensor inner = Activate(options_.activation, ffn_in(before(ffn_norm, result.x)));
  result.x = Add(result.x, inner, ffn_out, ffn_norm, DeriveSeed(call.seed, kFfn));
  return result;
}

}  // namespace regard::nn
