// What every translation model can do: give its loss on a batch, and translate.
#ifndef REGARD_MODELS_TRANSLATION_H_
#define REGARD_MODELS_TRANSLATION_H_

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace regard::models {

// Token numbers every vocabulary shares.
inline constexpr std::int64_t kPad = 0, kBos = 1, kEos = 2, kUnk = 3;

// N sentence pairs. Sources end with kEos; targets start with kBos and end with kEos. All tensors are int64.
struct PairBatch {
  torch::Tensor source;          // [N, S], padded with kPad
  torch::Tensor source_lengths;  // [N], kEos included
  torch::Tensor target;          // [N, T + 1], padded with kPad: columns 0..T-1 go in, 1..T are predicted
  torch::Tensor target_lengths;  // [N], number of predicted tokens (kEos included, kBos not)
};

struct LossSum {
  torch::Tensor
      sum;  // scalar, nats summed over the predicted tokens, label smoothing included; has a gradient
  torch::Tensor nats;       // scalar, the same without label smoothing, detached
  std::int64_t tokens = 0;  // predicted tokens, padding not counted
};

struct DecodeOptions {
  std::int64_t beam = 1;        // 1: greedy
  double length_penalty = 1.0;  // a hypothesis is ranked by log-probability / length^penalty
  std::int64_t max_length = 0;  // tokens; 0: the model's own limit
  bool attention = false;       // keep the weights
  bool heads = false;           // with attention, of a model with several heads: each head's, not their mean
};

struct Hypothesis {
  std::vector<std::int64_t> tokens;  // without kBos and kEos
  bool ended = false;                // it ended with kEos, not at the length limit
  double log_prob = 0;               // nats, kEos included
  // float [T, S]: weights of each target step (kEos included) over the source; with DecodeOptions::heads
  // [T, H, S]
  torch::Tensor attention;
};

class TranslationModel : public torch::nn::Module {
 public:
  // Everything needed to build the model again: {"model": name, ...}.
  virtual nlohmann::json config() const = 0;
  // seed: of this step's dropout; the same seed gives the same mask. Only used in training mode.
  virtual LossSum Loss(const PairBatch& batch, double label_smoothing, std::uint64_t seed) = 0;
  // The best hypothesis for each source [N, S] with lengths [N]; the same whatever else is in the batch.
  virtual std::vector<Hypothesis> Translate(const torch::Tensor& source, const torch::Tensor& lengths,
                                            const DecodeOptions& options) = 0;
};

// Builds the model that config["model"] names ("bahdanau" or "transformer"), with fresh weights from torch's
// generator. Throws regard::Error naming an unknown model, a missing or a wrong entry.
std::shared_ptr<TranslationModel> MakeTranslationModel(const nlohmann::json& config);

}  // namespace regard::models

#endif  // REGARD_MODELS_TRANSLATION_H_
