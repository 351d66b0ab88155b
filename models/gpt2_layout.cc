#include "models/gpt2_layout.h"

#include <array>
#include <map>
#include <optional>

#include "engine/base/error.h"
#include "models/config.h"

namespace regard::models {
namespace {

using torch::Tensor;

struct Name {
  std::string ours, theirs;
  bool matrix = false;  // [out, in] here, [in, out] there
};

std::vector<Name> Names(std::int64_t layers, bool tied) {
  std::vector<Name> names{{"token_embedding", "wte.weight"},
                          {"position_embedding", "wpe.weight"},
                          {"final_norm.weight", "ln_f.weight"},
                          {"final_norm.bias", "ln_f.bias"}};
  if (!tied) names.push_back({"head", "lm_head.weight"});
  for (std::int64_t n = 0; n < layers; ++n) {
    const std::string our = "layers." + std::to_string(n) + ".", their = "h." + std::to_string(n) + ".";
    const auto add = [&](const std::string& ours, const std::string& theirs, bool matrix) {
      names.push_back({our + ours, their + theirs, matrix});
    };
    for (const bool weight : {true, false}) {
      const std::string kind = weight ? "weight" : "bias";
      add("self_norm." + kind, "ln_1." + kind, false);
      add("self_attention.in_proj_" + kind, "attn.c_attn." + kind, weight);
      add("self_attention.out_proj." + kind, "attn.c_proj." + kind, weight);
      add("ffn_norm." + kind, "ln_2." + kind, false);
      add("ffn_in." + kind, "mlp.c_fc." + kind, weight);
      add("ffn_out." + kind, "mlp.c_proj." + kind, weight);
    }
  }
  return names;
}

constexpr std::array<std::pair<const char*, const char*>, 3> kActivations{
    {{"gelu", "gelu"}, {"gelu_tanh", "gelu_new"}, {"relu", "relu"}}};

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Weights ToGpt2(const Gpt& model) {
  const GptConfig config = GptConfig::Read(model.config());
  const auto own = model.named_parameters();
  Weights weights;
  for (const Name& name : Names(config.num_layers, config.tied)) {
    const Tensor* found = own.find(name.ours);
    if (found != nullptr) {
      weights.emplace_back(name.theirs, name.matrix ? found->detach().t().contiguous() : found->detach());
    } else {  // a bias of a model without: as long as its weight has outputs
      const std::string weight = name.ours.substr(0, name.ours.size() - 4) + "weight";
      weights.emplace_back(name.theirs, torch::zeros({own[weight].size(0)}));
    }
  }
  return weights;
}

nlohmann::json ToGpt2Config(const Gpt& model) {
  const GptConfig c = GptConfig::Read(model.config());
  std::string activation;
  for (const auto& [ours, theirs] : kActivations) {
    if (c.activation == ours) activation = theirs;
  }
  return {{"model_type", "gpt2"},
          {"architectures", {"GPT2LMHeadModel"}},
          {"vocab_size", c.vocab},
          {"n_positions", c.context},
          {"n_ctx", c.context},
          {"n_embd", c.embed_dim},
          {"n_layer", c.num_layers},
          {"n_head", c.num_heads},
          {"n_inner", c.ffn_dim},
          {"activation_function", activation},
          {"layer_norm_epsilon", 1e-5},
          {"embd_pdrop", c.dropout},
          {"attn_pdrop", c.dropout},
          {"resid_pdrop", c.dropout},
          {"tie_word_embeddings", c.tied},
          {"bos_token_id", kBos},
          {"eos_token_id", kEos}};
}

nlohmann::json FromGpt2Config(const nlohmann::json& config) {
  const ConfigReader read(config);
  read.Choice("model_type", {"gpt2"});
  const std::int64_t width = read.Integer("n_embd", 1);
  const bool inner = config.contains("n_inner") && !config.at("n_inner").is_null();
  const std::string theirs =
      read.Choice("activation_function", {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu"}, "gelu_new");
  if (config.contains("layer_norm_epsilon") && config.at("layer_norm_epsilon") != 1e-5) {
    throw Error("model configuration: \"layer_norm_epsilon\" is " + config.at("layer_norm_epsilon").dump() +
                ": expected 1e-05");
  }
  std::string activation = "gelu_tanh";
  for (const auto& [ours, name] : kActivations) {
    if (theirs == name) activation = ours;
  }
  return {{"model", "gpt"},
          {"vocab", read.Integer("vocab_size", 1)},
          {"context", read.Integer("n_positions", 1)},
          {"embed_dim", width},
          {"num_heads", read.Integer("n_head", 1)},
          {"num_layers", read.Integer("n_layer", 1)},
          {"ffn_dim", inner ? read.Integer("n_inner", 1) : 4 * width},
          {"dropout", read.Probability("resid_pdrop", 0.1)},
          {"bias", true},
          {"tied", read.Boolean("tie_word_embeddings", true)},
          {"activation", activation}};
}

void FromGpt2(const Weights& weights, Gpt& model, const std::string& origin) {
  torch::NoGradGuard no_grad;
  const GptConfig config = GptConfig::Read(model.config());
  std::map<std::string, Tensor> given;
  for (const auto& [name, tensor] : weights) {
    const std::string prefix = "transformer.";
    const std::string plain = name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : name;
    if (EndsWith(plain, ".attn.bias") || EndsWith(plain, ".attn.masked_bias")) continue;
    if (config.tied && plain == "lm_head.weight") continue;
    given[plain] = tensor;
  }
  auto own = model.named_parameters();
  for (const Name& name : Names(config.num_layers, config.tied)) {
    const auto found = given.find(name.theirs);
    if (found == given.end()) throw Error(origin + ": the weight \"" + name.theirs + "\" is missing");
    Tensor* into = own.find(name.ours);
    if (into == nullptr) throw Error(origin + ": holds biases; expected a model that has them");
    const Tensor tensor = name.matrix && found->second.dim() == 2 ? found->second.t() : found->second;
    if (tensor.sizes() != into->sizes()) {
      throw Error(c10::str(origin, ": the weight \"", name.theirs, "\" is ", found->second.sizes(),
                           "; expected ", (name.matrix ? into->t() : *into).sizes()));
    }
    into->copy_(tensor);
    given.erase(found);
  }
  if (!given.empty()) throw Error(origin + ": unexpected weight \"" + given.begin()->first + "\"");
}

}  // namespace regard::models
