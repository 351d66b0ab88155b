// Beam search over any model that continues target sentences token by token.
#ifndef REGARD_MODELS_BEAM_H_
#define REGARD_MODELS_BEAM_H_

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "models/translation.h"

namespace regard::models {

// What the search asks of a model. It holds `beam` rows for each of its sentences, a sentence's rows
// together.
class BeamModel {
 public:
  virtual ~BeamModel() = default;
  // Continues row r with tokens[r]: log-probabilities of what follows, float [rows, V].
  virtual torch::Tensor Step(const torch::Tensor& tokens) = 0;
  // The attention weights of the last step, float [rows, S] or [rows, H, S]; undefined where
  // there are none.
  virtual torch::Tensor Attention() = 0;
  // From now on sentence i is the former sentences[i], and row r continues the former row rows[r].
  virtual void Select(const torch::Tensor& sentences, const torch::Tensor& rows) = 0;
};

// The best hypothesis for each of `sentences` sentences of at most max_length tokens, kEos included.
//
// Each step keeps the `beam` best continuations of a sentence (all, when there are fewer); those that end
// with kEos leave the beam. With a beam of 1 this is greedy decoding. kPad and kBos are never chosen. The
// search of a sentence stops when nothing still in its beam can end with a better rank, log-probability /
// length^penalty, than the best that has ended. One that has not ended counts only when none has. Of equals
// the first wins. Throws regard::Error when options.beam < 1 or max_length < 1.
std::vector<Hypothesis> BeamSearch(BeamModel& model, std::int64_t sentences, std::int64_t max_length,
                                   const DecodeOptions& options);

}  // namespace regard::models

#endif  // REGARD_MODELS_BEAM_H_
