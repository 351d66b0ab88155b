// What every language model can do: give its loss on windows of text, and tell what comes next.
#ifndef REGARD_MODELS_LANGUAGE_H_
#define REGARD_MODELS_LANGUAGE_H_

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "models/translation.h"

namespace regard::models {

// N windows of T tokens and the tokens that follow each of them; int64 [N, T].
struct TokenBatch {
  torch::Tensor inputs, targets;
};

// Reads N texts at once, some tokens at a time; how they are cut into calls does not matter.
class LanguageDecoder {
 public:
  virtual ~LanguageDecoder() = default;
  // Reads tokens [N, T], T >= 1, after those read before; the logits [N, vocabulary] of what follows the
  // last.
  virtual torch::Tensor Step(const torch::Tensor& tokens) = 0;
  // Goes on with these rows (int64 indices, in any number, also repeated).
  virtual void Select(const torch::Tensor& rows) = 0;
};

class LanguageModel : public torch::nn::Module {
 public:
  // Everything needed to build the model again: {"model": name, "vocab": tokens, "context": length, ...}.
  virtual nlohmann::json config() const = 0;
  // The most tokens that a prediction can depend on, and that a window can have.
  virtual std::int64_t context() const = 0;
  // seed: of this step's dropout; the same seed gives the same mask. Only used in training mode.
  virtual LossSum Loss(const TokenBatch& batch, std::uint64_t seed) = 0;
  // What each token of a text (int64 [T], 1 <= T <= context()) attends to: weights [layers, heads, T, T], in
  // evaluation mode, without gradient. Throws regard::Error naming a shape that does not fit.
  virtual torch::Tensor Attention(const torch::Tensor& tokens) = 0;
  // Starts with no text, in evaluation mode. The model has to outlive it, with its weights unchanged.
  virtual std::unique_ptr<LanguageDecoder> Decode() = 0;
};

// Builds the model that config["model"] names ("gpt"), with fresh weights from torch's generator. Throws
// regard::Error naming an unknown model, a missing or a wrong entry.
std::shared_ptr<LanguageModel> MakeLanguageModel(const nlohmann::json& config);

}  // namespace regard::models

#endif  // REGARD_MODELS_LANGUAGE_H_
