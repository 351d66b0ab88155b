#include "nn/layer_step.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/target.h"
#include "nn/row_kernels.h"
#include "nn/torch_threads.h"
#include "regard/attention.h"

namespace regard::nn {
namespace {

using torch::Tensor;

// Products of fewer weights are not worth a second thread.
constexpr std::int64_t kWeightsOfAThread = 16384;

const float* DataOrNull(const Tensor& t) { return t.defined() ? t.const_data_ptr<float>() : nullptr; }

}  // namespace

void ProductOfFewRows(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y, bool add) {
  const RowProduct product{x.size(0),
                           weight.size(1),
                           weight.size(0),
                           x.const_data_ptr<float>(),
                           weight.const_data_ptr<float>(),
                           DataOrNull(bias),
                           y.data_ptr<float>(),
                           add};
  at::parallel_for(0, product.columns, std::max<std::int64_t>(1, kWeightsOfAThread / product.inner),
                   [&](std::int64_t begin, std::int64_t end) { Product(product, begin, end); });
}

void NormOfFewRows(const Norm& norm, const Tensor& x, Tensor& y) {
  const std::int64_t width = x.size(1);
  const RowNorm row{width, norm->eps(), norm->weight.const_data_ptr<float>(), DataOrNull(norm->bias)};
  for (std::int64_t n = 0; n < x.size(0); ++n) {
    Normalize(row, x.const_data_ptr<float>() + n * width, y.data_ptr<float>() + n * width);
  }
}

bool LayerStep::Can(const TransformerLayer& layer) {
  const auto parameters = layer->parameters();
  return layer->cross_attention.is_empty() &&
         std::all_of(parameters.begin(), parameters.end(), [](const Tensor& p) {
           return p.is_cpu() && p.scalar_type() == torch::kFloat && p.is_contiguous();
         });
}

LayerStep::LayerStep(const TransformerLayer& layer) : layer_(layer) {
  // Before the first product, so that all run on the same instruction set.
  if (const Status status = engine::ChooseTarget(); !status.ok()) throw Error(status.message());
}

void LayerStep::Attend(std::int64_t rows, KeyValueCache& cache) {
  const MultiHeadOptions& o = layer_->self_attention->options();
  const std::int64_t H = o.num_heads, G = o.num_key_heads, D = o.embed_dim / H, all = (H + 2 * G) * D;
  cache.Extend({rows, G, 1, D}, qkv_.options());
  const Tensor &keys = cache.keys(), &values = cache.values();
  const std::int64_t length = cache.length(), of_head = keys.stride(1), of_row = keys.stride(0);
  const float* qkv = qkv_.const_data_ptr<float>();
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t g = 0; g < G; ++g) {
      const std::int64_t to = n * of_row + g * of_head + (length - 1) * D;
      const float* key = qkv + n * all + (H + g) * D;
      std::copy_n(key, D, keys.data_ptr<float>() + to);
      std::copy_n(key + G * D, D, values.data_ptr<float>() + to);
    }
  }
  const auto seen = [&](const Tensor& t) {
    return TensorView<const float, 4>{
        t.const_data_ptr<float>(), {rows, G, length, D}, {of_row, of_head, D, 1}};
  };
  AttentionOptions<float> options;
  options.threads = at::get_num_threads();
  options.parallel_for = TorchParallelFor;
  const Status status = AttentionForward<float>(
      options, {{qkv, {rows, H, 1, D}, {all, D, all, 1}}, seen(keys), seen(values)},
      {{heads_.data_ptr<float>(), {rows, H, 1, D}, {H * D, D, H * D, 1}}, {}, {}, {}, {}});
  if (!status.ok()) throw Error(status.message());
}

void LayerStep::Add(const Tensor& part, const torch::nn::Linear& linear, const Norm& norm, Tensor& x) {
  ProductOfFewRows(part, linear->weight, linear->bias, x, /*add=*/true);
  if (layer_->options().pre_norm) return;
  NormOfFewRows(norm, x, normed_);
  std::swap(x, normed_);
}

void LayerStep::operator()(Tensor& x, KeyValueCache& cache) {
  const std::int64_t rows = x.size(0);
  const TransformerLayerOptions& o = layer_->options();
  const Tensor& in_weight = layer_->self_attention->in_proj_weight;
  if (!qkv_.defined() || qkv_.size(0) != rows) {
    const auto buffer = [&](std::int64_t width) { return torch::empty({rows, width}, x.options()); };
    normed_ = buffer(o.embed_dim);
    qkv_ = buffer(in_weight.size(0));
    heads_ = buffer(o.embed_dim);
    inner_ = buffer(o.ffn_dim);
  }
  const auto before = [&](const Norm& norm) -> const Tensor& {
    if (!o.pre_norm) return x;
    NormOfFewRows(norm, x, normed_);
    return normed_;
  };
  ProductOfFewRows(before(layer_->self_norm), in_weight, layer_->self_attention->in_proj_bias, qkv_);
  Attend(rows, cache);
  Add(heads_, layer_->self_attention->out_proj, layer_->self_norm, x);
  ProductOfFewRows(before(layer_->ffn_norm), layer_->ffn_in->weight, layer_->ffn_in->bias, inner_);
  Activate(o.activation, inner_.numel(), inner_.const_data_ptr<float>(), inner_.data_ptr<float>());
  Add(inner_, layer_->ffn_out, layer_->ffn_norm, x);
}

}  // namespace regard::nn
