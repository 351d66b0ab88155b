#include "nn/self_attention.h"

#include "engine/base/error.h"
#include "nn/run_attend.h"

namespace regard::nn {
namespace {

using torch::Tensor;

void CheckInput(const Tensor& x, std::int64_t width, std::int64_t longest) {
  if (x.dim() < 2 || x.dim() > 3 || x.size(-1) != width) {
    throw Error(c10::str("x has shape ", x.sizes(), "; expected [batch, length, ", width, "] or [length, ",
                         width, "]"));
  }
  if (longest > 0 && x.size(-2) > longest) {
    throw Error(c10::str("x is ", x.size(-2), " elements long; the context length is ", longest));
  }
}

}  // namespace

Context AveragePool(const Tensor& values, std::int64_t queries, const Tensor& lengths, bool return_weights) {
  if (values.dim() != 3) {
    throw Error(c10::str("values has shape ", values.sizes(), "; expected [batch, keys, width]"));
  }
  if (queries < 0) throw Error(c10::str("queries is ", queries, "; expected 0 or more"));
  AttendOptions options;
  options.score = ScoreKind::kDot;
  options.lengths = lengths;
  options.return_weights = return_weights;
  const Tensor q = torch::zeros({values.size(0), queries, 1}, values.options().requires_grad(false));
  const Tensor k = torch::zeros({values.size(0), values.size(1), 1}, q.options());
  return internal::RunAttend(q, k, values, options, 0, false);
}

SimpleSelfAttentionImpl::SimpleSelfAttentionImpl(ScoreKind score) : score_(score) {
  if (score != ScoreKind::kDot && score != ScoreKind::kScaledDot && score != ScoreKind::kCosine) {
    throw Error("self-attention without parameters: expected the dot, scaled dot or cosine score");
  }
}

Context SimpleSelfAttentionImpl::forward(const Tensor& x, const Tensor& lengths, bool return_weights) {
  AttendOptions options;
  options.score = score_;
  options.lengths = lengths;
  options.return_weights = return_weights;
  return internal::RunAttend(x, x, x, options, 0, false);
}

void SimpleSelfAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "regard::nn::SimpleSelfAttention("
         << (score_ == ScoreKind::kCosine ? "cosine"
             : score_ == ScoreKind::kDot  ? "dot"
                                          : "scaled dot")
         << ")";
}

SelfAttentionImpl::SelfAttentionImpl(const SelfAttentionOptions& options) : options_(options) {
  if (options.input_size < 1 || options.output_size < 1 || options.projection_size < 0) {
    throw Error(c10::str("self-attention of sizes ", options.input_size, ", ", options.output_size, " and ",
                         options.projection_size, ": expected 1 or more (or no projection)"));
  }
  if (options.bias && !options.linear) throw Error("a plain matrix has no bias: bias needs linear layers");
  internal::CheckedDropout(options.dropout);
  if (options.linear) {
    const auto layer = [&](const char* name) {
      const auto sizes = torch::nn::LinearOptions(options.input_size, options.output_size);
      return register_module(name, torch::nn::Linear(torch::nn::LinearOptions(sizes).bias(options.bias)));
    };
    q_layer = layer("W_q"), k_layer = layer("W_k"), v_layer = layer("W_v");
  } else {
    const auto matrix = [&](const char* name) {
      return register_parameter(name, torch::rand({options.input_size, options.output_size}));
    };
    W_q = matrix("W_q"), W_k = matrix("W_k"), W_v = matrix("W_v");
  }
  if (options.projection_size > 0) {
    out_layer = register_module("W_o", torch::nn::Linear(options.output_size, options.projection_size));
  }
}

Context SelfAttentionImpl::forward(const Tensor& x, const Tensor& lengths, bool return_weights) {
  CheckInput(x, options_.input_size, options_.context_length);
  AttendOptions attend;
  attend.causal = options_.causal;
  if (options_.window >= 0) attend.window_left = attend.window_right = options_.window;
  attend.lengths = lengths;
  attend.return_weights = return_weights;
  const auto project = [&](const Tensor& matrix, torch::nn::Linear& layer) {
    return options_.linear ? layer(x) : torch::matmul(x, matrix);
  };
  Context result = internal::RunAttend(project(W_q, q_layer), project(W_k, k_layer), project(W_v, v_layer),
                                       attend, options_.dropout, is_training());
  if (!out_layer.is_empty()) result.context = out_layer(result.context);
  return result;
}

void SelfAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "regard::nn::SelfAttention(input_size=" << options_.input_size
         << ", output_size=" << options_.output_size << ", linear=" << options_.linear
         << ", bias=" << options_.bias << ", causal=" << options_.causal
         << ", context_length=" << options_.context_length << ", window=" << options_.window
         << ", projection_size=" << options_.projection_size << ", dropout=" << options_.dropout << ")";
}

SideBySideHeadsImpl::SideBySideHeadsImpl(std::int64_t count, const SelfAttentionOptions& options) {
  if (count < 1) throw Error(c10::str(count, " heads: expected 1 or more"));
  SelfAttentionOptions own = options;
  own.projection_size = 0;
  for (std::int64_t h = 0; h < count; ++h) {
    heads.push_back(register_module("head" + std::to_string(h), SelfAttention(own)));
  }
  if (options.projection_size > 0) {
    out_layer =
        register_module("W_o", torch::nn::Linear(count * options.output_size, options.projection_size));
  }
}

Context SideBySideHeadsImpl::forward(const Tensor& x, const Tensor& lengths, bool return_weights) {
  if (x.dim() != 3) {
    throw Error(c10::str("x has shape ", x.sizes(), "; expected [batch, length, width]"));
  }
  std::vector<Tensor> contexts, weights;
  for (SelfAttention& head : heads) {
    const Context one = head->forward(x, lengths, return_weights);
    contexts.push_back(one.context);
    weights.push_back(one.weights);
  }
  Context all{torch::cat(contexts, -1), return_weights ? torch::stack(weights, 1) : Tensor()};
  if (!out_layer.is_empty()) all.context = out_layer(all.context);
  return all;
}

}  // namespace regard::nn
