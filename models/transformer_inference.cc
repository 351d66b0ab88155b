#include "models/transformer_inference.h"

#include "nn/activation.h"

namespace regard::models {
namespace {

using torch::Tensor;

// Rows of a module's projection of queries, keys and values.
nn::PackedLinear Part(const nn::MultiHeadAttention& module, std::int64_t first, std::int64_t parts) {
  const std::int64_t d = module->options().embed_dim;
  return nn::PackedLinear(module->in_proj_weight.narrow(0, first * d, parts * d),
                          module->in_proj_bias.narrow(0, first * d, parts * d));
}

// x [N L, parts H D] -> [parts, N, H, L, D]
Tensor Heads(const Tensor& x, std::int64_t sequences, std::int64_t parts, std::int64_t heads) {
  return x.view({sequences, x.size(0) / sequences, parts, heads, x.size(1) / parts / heads})
      .permute({2, 0, 3, 1, 4});
}

// [N, H, L, D] -> [N L, H D]
Tensor Rows(const Tensor& out) { return out.transpose(1, 2).flatten(2).flatten(0, 1); }

}  // namespace

InferenceLayer::Attention::Attention(const nn::MultiHeadAttention& module)
    : heads(module->options().num_heads),
      in(Part(module, 0, 3)),
      query(Part(module, 0, 1)),
      key_value(Part(module, 1, 2)),
      out(module->out_proj->weight, module->out_proj->bias) {}

InferenceLayer::InferenceLayer(const nn::TransformerLayer& layer)
    : layer_(layer),
      self_(layer->self_attention),
      ffn_in_(layer->ffn_in->weight, layer->ffn_in->bias),
      ffn_out_(layer->ffn_out->weight, layer->ffn_out->bias) {
  if (!layer->cross_attention.is_empty()) cross_ = std::make_unique<Attention>(layer->cross_attention);
}

nn::KeyValues InferenceLayer::ProjectMemory(const Tensor& memory) const {
  const Tensor both =
      Heads(cross_->key_value(memory.flatten(0, 1)), memory.size(0), 2, cross_->heads).contiguous();
  return {both[0], both[1]};
}

Tensor InferenceLayer::operator()(const Tensor& input, const Call& call) {
  Tensor x = input.flatten(0, 1);
  const Tensor qkv = Heads(self_.in(Before(layer_->self_norm, x)), input.size(0), 3, self_.heads);
  nn::KeyValues seen{qkv[1], qkv[2]};
  if (call.cache != nullptr) seen = call.cache->Append(qkv[1], qkv[2]);
  x = x + self_.out(Rows(nn::Attend(qkv[0], seen.keys, seen.values, call.self).out));
  x = After(layer_->self_norm, x);
  if (cross_) {
    const Tensor q =
        Heads(cross_->query(Before(layer_->cross_norm, x)), call.memory->keys.size(0), 1, cross_->heads)[0];
    nn::AttendOptions options;
    options.lengths = call.memory_lengths;
    options.return_weights = call.cross_weights != nullptr;
    const auto read = nn::Attend(q, call.memory->keys, call.memory->values, options);
    if (call.cross_weights != nullptr) *call.cross_weights = read.weights;
    x = After(layer_->cross_norm, x + cross_->out(Rows(read.out)));
  }
  const Tensor inner = nn::Activate(layer_->options().activation, ffn_in_(Before(layer_->ffn_norm, x)));
  x = After(layer_->ffn_norm, x + ffn_out_(inner));
  return x.view(input.sizes());
}

}  // namespace regard::models
