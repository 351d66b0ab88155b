// Soft and hard attention in one module: all keys weighed, or one key chosen.
#ifndef REGARD_NN_CHOICE_ATTENTION_H_
#define REGARD_NN_CHOICE_ATTENTION_H_

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <ostream>

#include "nn/attend.h"

namespace regard::nn {

enum class AttentionKind { kSoft, kHard };

// What was not computed is undefined.
struct Choice {
  torch::Tensor context;   // [B, L, E]
  torch::Tensor weights;   // [B, L, S]: softmax of the scores, where asked for
  torch::Tensor index;     // int64 [B, L]: the key chosen, -1 where there is none; hard only
  torch::Tensor log_prob;  // [B, L]: log softmax of that key, with a gradient; hard only
  torch::Tensor entropy;   // [B, L]: -sum_j p_j log p_j in nats, with a gradient; hard, in training only
};

// Scaled dot-product attention without parameters that is soft or hard:
//   soft:             c_i = sum_j p_ij v_j,  p_i. = softmax_j(q_i·k_j / sqrt(D))
//   hard, training:   c_i = v_j with j drawn from p_i.
//   hard, evaluation: c_i = v_j with the largest p_ij
// (Xu et al. 2015, "Show, attend and tell", sections 4.1 and 4.2.) Draws follow torch's generator. Hard
// attention sends a gradient to the values directly; queries and keys learn by ScoreFunctionLoss.
class ChoiceAttentionImpl : public torch::nn::Module {
 public:
  explicit ChoiceAttentionImpl(AttentionKind kind = AttentionKind::kSoft) : kind_(kind) {}

  // queries [B, L, D], keys [B, S, D], values [B, S, E], lengths as in MaskedSoftmax.
  Choice forward(const torch::Tensor& queries, const torch::Tensor& keys, const torch::Tensor& values,
                 const torch::Tensor& lengths = {}, bool return_weights = false);

  AttentionKind kind() const { return kind_; }
  void pretty_print(std::ostream& stream) const override;

 private:
  AttentionKind kind_;
};
TORCH_MODULE(ChoiceAttention);

// The mean of past losses, each step's counting `rate`, 0 < rate <= 1 (an exponential moving average).
class MovingBaseline {
 public:
  explicit MovingBaseline(double rate = 0.1) : rate_(rate) {}

  // Before the first Add: none.
  std::optional<double> value() const { return value_; }
  void Add(double loss) { value_ = value_ ? *value_ + rate_ * (loss - *value_) : loss; }

 private:
  double rate_;
  std::optional<double> value_;
};

// What to differentiate so that a sampled choice learns (the score-function estimator, Williams 1992):
//   mean_n [ loss_n + (loss_n - baseline) sum_i log_prob_ni - entropy_weight sum_i entropy_ni ]
// with the factor (loss_n - baseline) held constant: its gradient is that of the expected loss, less noisy
// the nearer the baseline is to it, and the entropy keeps the choice open. losses [B], one a sample; choice
// from hard attention in training. Throws regard::Error where shapes do not fit or there is no choice.
torch::Tensor ScoreFunctionLoss(const torch::Tensor& losses, const Choice& choice, double baseline,
                                double entropy_weight = 0);

// The same with a baseline [B] for each sample, one that does not depend on its choice.
torch::Tensor ScoreFunctionLoss(const torch::Tensor& losses, const Choice& choice,
                                const torch::Tensor& baseline, double entropy_weight = 0);

}  // namespace regard::nn

#endif  // REGARD_NN_CHOICE_ATTENTION_H_
