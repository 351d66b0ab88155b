// Multi-head attention on the fused engine, and the keys and values it keeps while a sequence is written.
#ifndef REGARD_NN_MULTI_HEAD_H_
#define REGARD_NN_MULTI_HEAD_H_

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "nn/attend.h"
#include "nn/modules.h"

namespace regard::nn {

// Projected keys [B, G, S, D] and values [B, G, S, D].
struct KeyValues {
  torch::Tensor keys, values;
};

// The keys and values of a sequence that grows. Not for training.
class KeyValueCache {
 public:
  // Adds L positions to each row, keys and values [B, G, L, D], and returns views of all so far. The first
  // call says how many rows there are; later ones need as many.
  KeyValues Append(const torch::Tensor& keys, const torch::Tensor& values);
  KeyValues All() const;
  // Makes room for what Append would add, of shape [B, G, L, D], which the caller writes: the last L of the
  // first length() positions of keys() and values(). Throws regard::Error where B, G or D are not those
  // there.
  void Extend(torch::IntArrayRef shape, const torch::TensorOptions& options);
  const torch::Tensor& keys() const { return keys_; }      // [B, G, capacity, D], contiguous
  const torch::Tensor& values() const { return values_; }  // the same
  std::int64_t length() const { return length_; }
  // Goes on with these rows (int64 indices, in any number, also repeated).
  void Select(const torch::Tensor& rows);
  // Forgets everything.
  void Clear();

 private:
  torch::Tensor keys_, values_;  // [B, G, capacity, D]
  std::int64_t length_ = 0;
};

struct MultiHeadOptions {
  std::int64_t embed_dim = 0;      // H D: width of all heads together, and of the output
  std::int64_t num_heads = 1;      // H
  std::int64_t num_key_heads = 0;  // G, H % G == 0: each key head serves H / G query heads; 0: H
  std::int64_t query_size = 0, key_size = 0, value_size = 0;  // 0: embed_dim
  bool bias = true;                                           // of all four projections
  double dropout = 0;                                         // of the weights, while training
  // The score of each of the H heads; empty: all have that of the call.
  std::vector<ScoreKind> scores{};
};

// H attentions side by side, each over its own projections:
//   head_h = attend(W_q^h q, W_k^g k, W_v^g v),  g = h / (H / G),  out = W_o [head_1; ..; head_H] + b_o
// (Vaswani et al. 2017, "Attention is all you need", section 3.2.2; G < H: Ainslie et al. 2023, "GQA")
//
// Names and layout of the weights are those of torch::nn::MultiheadAttention: with one size for queries, keys
// and values in_proj_weight [(H + 2G) D, size], the rows of q, k and v in turn; with several sizes
// q_proj_weight, k_proj_weight and v_proj_weight; in_proj_bias [(H + 2G) D]; out_proj.weight, out_proj.bias.
//
// With options.scores heads of several scores stand side by side (Britz et al. 2017, "Massive exploration of
// neural machine translation architectures", compares additive and dot scores). The A additive heads have
// additive_weight [A, D] of the module; a scale or a precision is the call's, whose own score and
// additive_weight are then not used.
//
// Each call takes any score, mask, bias or normaliser as AttendOptions, sizes as for [B, H, L, S] attention.
// While training, the dropout is the module's and the mask is drawn from options.seed; 0: from torch's
// generator. In a call, options.return_weights asks for the weights [B, H, L, S].
class MultiHeadAttentionImpl : public torch::nn::Module {
 public:
  // Throws regard::Error for sizes that do not fit together.
  explicit MultiHeadAttentionImpl(const MultiHeadOptions& options);

  // queries [B, L, query_size], keys [B, S, key_size], values [B, S, value_size]: context [B, L, embed_dim].
  Context forward(const torch::Tensor& queries, const torch::Tensor& keys, const torch::Tensor& values,
                  const AttendOptions& options = {});

  // forward(x, x, x), in one product; needs one size. With a cache, x goes on where its keys end and sees
  // them too: a causal mask then has to be of the bottom-right corner.
  Context SelfAttend(const torch::Tensor& x, const AttendOptions& options = {},
                     KeyValueCache* cache = nullptr);

  // The two halves of forward, for keys that are asked many times.
  KeyValues ProjectKeys(const torch::Tensor& keys, const torch::Tensor& values);
  Context AttendTo(const torch::Tensor& queries, const KeyValues& memory, const AttendOptions& options = {});

  // The part of SelfAttend and AttendTo before W_o: heads side by side [B, L, embed_dim], and weights.
  Context SelfHeads(const torch::Tensor& x, AttendOptions options, KeyValueCache* cache);
  Context HeadsOf(const torch::Tensor& queries, const KeyValues& memory, AttendOptions options);

  // Copies the weights of torch's module: outputs are equal then. Throws regard::Error where sizes differ, or
  // for its add_bias_kv and add_zero_attn, which have no counterpart.
  void CopyFrom(const torch::nn::MultiheadAttention& other);

  const MultiHeadOptions& options() const { return options_; }
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor in_proj_weight;                               // or, with several sizes,
  torch::Tensor q_proj_weight, k_proj_weight, v_proj_weight;  //
  torch::Tensor in_proj_bias;                                 // undefined without bias
  torch::nn::Linear out_proj{nullptr};
  torch::Tensor additive_weight;  // undefined without additive heads in options.scores

 private:
  // Rows of the projections of q, k and v; their weight and bias.
  enum Part { kQuery, kKey, kValue, kParts };
  torch::Tensor Project(const torch::Tensor& x, Part part) const;
  std::int64_t Rows(Part part) const;
  torch::Tensor Heads(const torch::Tensor& projected) const;
  void ForTraining(AttendOptions* options) const;
  // Attend; with scores, a call for each run of heads that have the same.
  AttendResult AttendHeads(const torch::Tensor& queries, const KeyValues& memory,
                           const AttendOptions& options) const;

  MultiHeadOptions options_;
  std::int64_t head_dim_ = 0;
  bool packed_ = true;
};
TORCH_MODULE(MultiHeadAttention);

}  // namespace regard::nn

#endif  // REGARD_NN_MULTI_HEAD_H_
