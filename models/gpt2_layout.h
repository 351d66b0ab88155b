// GPT-2's names and layout of weights, as its files in safetensors have them.
//
//   wte.weight [vocab, E], wpe.weight [context, E], ln_f.{weight, bias}, lm_head.weight where it is not wte
//   h.N.ln_1, h.N.ln_2 .{weight, bias} [E]
//   h.N.attn.c_attn.{weight [E, 3E], bias}, h.N.attn.c_proj.{weight [E, E], bias}
//   h.N.mlp.c_fc.{weight [E, F], bias}, h.N.mlp.c_proj.{weight [F, E], bias}
// Matrices of the layers are [in, out].
#ifndef REGARD_MODELS_GPT2_LAYOUT_H_
#define REGARD_MODELS_GPT2_LAYOUT_H_

#include <torch/torch.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/gpt.h"

namespace regard::models {

using Weights = std::vector<std::pair<std::string, torch::Tensor>>;

// The weights in that layout; a model without biases gives biases of 0.
Weights ToGpt2(const Gpt& model);
// Its config.json: "n_embd", "n_layer", "n_head", "n_positions", "vocab_size", "n_inner",
// "activation_function", "tie_word_embeddings", dropout and the like.
nlohmann::json ToGpt2Config(const Gpt& model);

// The configuration of the model that such a config.json describes. Throws regard::Error naming an entry that
// is missing, wrong or has no counterpart.
nlohmann::json FromGpt2Config(const nlohmann::json& config);
// Copies weights in that layout into the model. Names may start with "transformer."; the masks that some
// files hold (attn.bias, attn.masked_bias) are left out. Throws regard::Error that starts with `origin` and
// names a weight that is missing, unexpected, or of another shape.
void FromGpt2(const Weights& weights, Gpt& model, const std::string& origin);

}  // namespace regard::models

#endif  // REGARD_MODELS_GPT2_LAYOUT_H_
