// The recurrent decoder with additive attention of Bahdanau et al. 2015 ("Neural machine translation by
// jointly learning to align and translate"), in the form of Zhang et al., "Dive into deep learning",
// section 11.4:
//   q_t = W_q s_{t-1}                    the top layer's state asks
//   a_t = softmax_j w·tanh(q_t + k_j)    over the source's steps, k_j = W_k h_j projected once a sentence
//   c_t = sum_j a_tj h_j
//   s_t = GRU([c_t; y_t], s_{t-1})       with as many layers as asked for
// Teacher forcing is one autograd function over the whole batch; a step at a time is DecoderStepper.
#ifndef REGARD_NN_ATTENTION_DECODER_H_
#define REGARD_NN_ATTENTION_DECODER_H_

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "nn/gru_packing.h"

namespace regard::nn {

// Sizes: C width of a value, D of a key, E of an embedding, H of a state.
struct DecoderWeights {
  torch::Tensor query;             // W_q [D, H]
  torch::Tensor score;             // w [D]
  std::vector<torch::Tensor> gru;  // as GruSequence's, layer 0 over [c; y]: w_ih [3H, C + E]
};

struct DecoderOptions {
  double dropout = 0;            // between layers
  double attention_dropout = 0;  // on the attention weights
  std::uint64_t seed = 0;        // of both: the same seed gives the same masks
  bool attention = false;        // keep the weights
};

// Row i of the batch is the target sequence packing.order[i].
struct DecoderInputs {
  torch::Tensor embeddings;      // y [P, E], packed
  torch::Tensor keys;            // [N, S, D]
  torch::Tensor values;          // [N, S, C]
  torch::Tensor source_lengths;  // [N] int64 in 0..S; of length 0 the context is 0
  torch::Tensor state;           // s_0 [layers, N, H]
};

struct DecoderOutput {
  torch::Tensor states;     // [P, H] packed: the top layer's s_t
  torch::Tensor contexts;   // [P, C] packed: c_t
  torch::Tensor attention;  // [P, S] packed: a_t before dropout, without gradient; undefined unless asked for
};

// Gradients go to embeddings, keys, values, state and all weights. float32 or float64 on the CPU; sizes that
// do not fit together throw regard::Error.
DecoderOutput DecodeSequence(const DecoderInputs& inputs, const DecoderWeights& weights,
                             const Packing& packing, const DecoderOptions& options);

// The seed of the attention's dropout at step t for rows from `row` on: one call of the engine.
std::uint64_t AttentionStepSeed(std::uint64_t seed, std::int64_t step, std::int64_t row);

// Decoding a step at a time, without gradient, with the weights laid out once. A row's bits do not depend on
// the rows beside it.
class DecoderStepper {
 public:
  // context_size: C
  DecoderStepper(const DecoderWeights& weights, std::int64_t context_size);
  ~DecoderStepper();

  // `group` rows in a row ask the same source: embeddings [N group, E], keys [N, S, D], values [N, S, C],
  // source_lengths [N]. state [layers, N group, H] is overwritten by the next one.
  DecoderOutput Step(const DecoderInputs& inputs, std::int64_t group, bool attention);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regard::nn

#endif  // REGARD_NN_ATTENTION_DECODER_H_
