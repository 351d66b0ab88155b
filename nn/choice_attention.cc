#include "nn/choice_attention.h"

#include "engine/base/error.h"
#include "nn/run_attend.h"

namespace regard::nn {
namespace {

using torch::Tensor;

// The softmax of the scores [B, L, S].
Tensor SoftWeights(const Tensor& queries, const Tensor& keys, const Tensor& lengths) {
  AttendOptions options;
  options.lengths = lengths;
  options.return_weights = true;
  const Tensor none = torch::zeros({keys.size(0), keys.size(1), 1}, keys.options().requires_grad(false));
  return Attend(queries, keys, none, options).weights;
}

}  // namespace

Choice ChoiceAttentionImpl::forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                    const Tensor& lengths, bool return_weights) {
  AttendOptions options;
  options.lengths = lengths;
  if (kind_ == AttentionKind::kSoft) {
    options.return_weights = return_weights;
    const AttendResult soft = Attend(queries, keys, values, options);
    return {soft.out, soft.weights, {}, {}, {}};
  }
  options.normalizer = is_training() ? NormalizerKind::kSample : NormalizerKind::kArgmax;
  if (is_training()) options.seed = internal::DrawSeed();
  const AttendResult hard = Attend(queries, keys, values, options);
  Choice choice{hard.out, {}, hard.index, hard.log_prob, {}};
  if (!is_training() && !return_weights) return choice;
  const Tensor weights = SoftWeights(queries, keys, lengths);
  if (is_training()) choice.entropy = -torch::special::xlogy(weights, weights.clamp_min(1e-30)).sum(-1);
  if (return_weights) choice.weights = weights;
  return choice;
}

void ChoiceAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "regard::nn::ChoiceAttention(" << (kind_ == AttentionKind::kSoft ? "soft" : "hard") << ")";
}

Tensor ScoreFunctionLoss(const Tensor& losses, const Choice& choice, double baseline, double entropy_weight) {
  return ScoreFunctionLoss(losses, choice, torch::full({losses.numel()}, baseline, losses.options()),
                           entropy_weight);
}

Tensor ScoreFunctionLoss(const Tensor& losses, const Choice& choice, const Tensor& baseline,
                         double entropy_weight) {
  if (!choice.log_prob.defined() || !choice.entropy.defined()) {
    throw Error("the score-function loss needs a choice that hard attention made in training");
  }
  if (losses.dim() != 1 || choice.log_prob.size(0) != losses.size(0)) {
    throw Error(c10::str("losses has shape ", losses.sizes(), " for choices of shape ",
                         choice.log_prob.sizes(), "; expected one loss for each sample"));
  }
  if (baseline.sizes() != losses.sizes()) {
    throw Error(c10::str("baseline has shape ", baseline.sizes(), "; expected ", losses.sizes(),
                         ", one for each loss"));
  }
  const Tensor advantage = losses.detach() - baseline.detach();
  const Tensor log_prob = choice.log_prob.flatten(1).sum(1), entropy = choice.entropy.flatten(1).sum(1);
  return (losses + advantage * log_prob - entropy_weight * entropy).mean();
}

}  // namespace regard::nn
