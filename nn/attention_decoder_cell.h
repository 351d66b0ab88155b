// One step of the attention decoder over a block of rows, forward and backward: what DecodeSequence repeats
// over time and DecoderStepper calls once. Sizes as in attention_decoder.h; L layers.
#ifndef REGARD_NN_ATTENTION_DECODER_CELL_H_
#define REGARD_NN_ATTENTION_DECODER_CELL_H_

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "engine/base/error.h"
#include "nn/attention_decoder.h"
#include "nn/gru_product.h"
#include "regard/attention.h"

namespace regard::nn::internal {

// The weights of a step, laid out for its products.
template <typename T>
struct Cell {
  std::int64_t layers, context_size, key_size, hidden;
  torch::Tensor score;                     // w [D]
  PackedMatrix<T> query;                   // W_q
  PackedMatrix<T> context, embed;          // the two parts of layer 0's w_ih; embed has b_ih
  std::vector<PackedMatrix<T>> input;      // w_ih and b_ih of layers 1 and up
  std::vector<PackedMatrix<T>> recurrent;  // w_hh and b_hh of every layer

  // context: C, where layer 0's w_ih is split
  Cell(const DecoderWeights& w, std::int64_t context)
      : layers(static_cast<std::int64_t>(w.gru.size()) / 4),
        context_size(context),
        key_size(w.query.size(0)),
        hidden(w.query.size(1)),
        score(w.score.contiguous()),
        query(PackTransposed<T>(w.query)),
        context(PackTransposed<T>(w.gru[0].slice(1, 0, context))),
        embed(PackTransposed<T>(w.gru[0].slice(1, context), w.gru[2].contiguous())) {
    for (std::int64_t l = 0; l < layers; ++l) {
      if (l > 0) input.push_back(PackTransposed<T>(w.gru[4 * l], w.gru[4 * l + 2].contiguous()));
      recurrent.push_back(PackTransposed<T>(w.gru[4 * l + 1], w.gru[4 * l + 3].contiguous()));
    }
  }
};

// Where a pass over P packed rows keeps what it computes. Row r of each belongs to packed row r.
template <typename T>
struct Trace {
  torch::Tensor inputs;                        // [P, 3H]: layer 0's w_ih x + b_ih
  torch::Tensor queries;                       // [P, D]
  torch::Tensor contexts;                      // [P, C]
  torch::Tensor lse;                           // [P]
  torch::Tensor attention;                     // [P, S] or undefined
  std::vector<torch::Tensor> gates, previous;  // each layer [P, 4H], [P, H], or undefined
  std::vector<torch::Tensor> outputs;          // each layer [P, H]
  std::vector<torch::Tensor> dropped;          // [P, H]: what layers 1 and up read (index 0 is undefined)
  std::vector<torch::Tensor> scales;           // [P, H] of that dropout, or undefined

  Trace(const Cell<T>& cell, const torch::Tensor& embeddings, std::int64_t source_steps, bool keep,
        bool attention_weights, double dropout, std::uint64_t seed) {
    const std::int64_t p = embeddings.size(0), h = cell.hidden;
    const auto options = embeddings.options().requires_grad(false);
    inputs = ProductAll(embeddings, cell.embed);
    queries = torch::empty({p, cell.key_size}, options);
    contexts = torch::empty({p, cell.context_size}, options);
    lse = torch::empty({p}, options);
    if (attention_weights) attention = torch::empty({p, source_steps}, options);
    for (std::int64_t l = 0; l < cell.layers; ++l) {
      gates.push_back(keep ? torch::empty({p, 4 * h}, options) : torch::Tensor());
      previous.push_back(keep ? torch::empty({p, h}, options) : torch::Tensor());
      outputs.push_back(torch::empty({p, h}, options));
      const bool drop = l > 0 && dropout > 0;
      dropped.push_back(drop ? torch::empty({p, h}, options) : l > 0 ? outputs[l - 1] : torch::Tensor());
      scales.push_back(drop ? torch::empty({p, h}, options) : torch::Tensor());
      if (drop) DropoutScales(DeriveSeed(seed, l), dropout, p * h, scales[l].template data_ptr<T>());
    }
  }
};

template <typename T>
T* At(const torch::Tensor& tensor, std::int64_t row) {
  return tensor.defined() ? tensor.data_ptr<T>() + row * tensor.stride(0) : nullptr;
}

// The source that the rows of a step ask: `group` rows for each of N sentences.
template <typename T>
struct Source {
  torch::Tensor keys, values, lengths;  // [N, S, D], [N, S, C], [N], contiguous
  torch::Tensor score;                  // w [D]
  std::int64_t group = 1;
  double dropout = 0;
  std::uint64_t seed = 0;

  // The engine's arguments for `rows` rows from `row` on at step t, whose queries start at packed row `at`.
  AttentionOptions<T> Options(std::int64_t t, std::int64_t row, std::int64_t rows) const {
    AttentionOptions<T> options;
    options.score = Additive<T>{{score.data_ptr<T>(), {1, score.size(0)}}};
    options.mask.lengths = Lengths{{lengths.data_ptr<std::int64_t>() + row / group, {rows / group, 1}}};
    if (dropout > 0) options.dropout = {dropout, AttentionStepSeed(seed, t, row)};
    options.threads = 1;
    return options;
  }
  AttentionInputs<T> Inputs(std::int64_t row, std::int64_t rows, const T* queries) const {
    const std::int64_t n = rows / group;
    return {{queries, {n, 1, group, keys.size(2)}},
            {At<T>(keys, row / group), {n, 1, keys.size(1), keys.size(2)}},
            {At<T>(values, row / group), {n, 1, values.size(1), values.size(2)}}};
  }
};

inline void Expect(const Status& status) {
  if (!status.ok()) throw Error("attention decoder: " + status.message());
}

// Step t of `rows` rows from `row` on, which are the packed rows from `at` on. state [L, N, H] is
// overwritten.
template <typename T>
void StepForward(const Cell<T>& cell, const Source<T>& source, const Trace<T>& trace,
                 const torch::Tensor& state, std::int64_t t, std::int64_t row, std::int64_t rows,
                 std::int64_t at, std::vector<T>& scratch) {
  const std::int64_t h = cell.hidden, n = rows / source.group;
  const std::int64_t s = source.keys.size(1);
  scratch.resize(rows * 6 * h);
  T* products = scratch.data();
  T* inputs = products + rows * 3 * h;

  const auto state_of = [&](std::int64_t l) { return state.data_ptr<T>() + (l * state.size(1) + row) * h; };
  Product(state_of(cell.layers - 1), h, rows, cell.query, At<T>(trace.queries, at), cell.key_size);
  AttentionOutputs<T> outputs;
  outputs.out = {At<T>(trace.contexts, at), {n, 1, source.group, cell.context_size}};
  outputs.lse = TensorView<T, 3>(At<T>(trace.lse, at), {n, 1, source.group});
  if (trace.attention.defined()) {
    outputs.weights = TensorView<T, 4>(At<T>(trace.attention, at), {n, 1, source.group, s});
  }
  Expect(AttentionForward(source.Options(t, row, rows), source.Inputs(row, rows, At<T>(trace.queries, at)),
                          outputs));
  Product(At<T>(trace.contexts, at), cell.context_size, rows, cell.context, At<T>(trace.inputs, at), 3 * h,
          /*accumulate=*/true);
  for (std::int64_t l = 0; l < cell.layers; ++l) {
    GruGates<T> step;
    step.rows = rows;
    step.hidden = h;
    step.state = state_of(l);
    if (l == 0) {
      step.input = At<T>(trace.inputs, at);
    } else {
      const T* below = At<T>(trace.dropped[l], at);
      if (trace.scales[l].defined()) {
        const T* from = At<T>(trace.outputs[l - 1], at);
        const T* scale = At<T>(trace.scales[l], at);
        T* to = At<T>(trace.dropped[l], at);
        for (std::int64_t i = 0; i < rows * h; ++i) to[i] = from[i] * scale[i];
      }
      Product(below, h, rows, cell.input[l - 1], inputs, 3 * h);
      step.input = inputs;
    }
    Product(step.state, h, rows, cell.recurrent[l], products, 3 * h);
    step.recurrent = products;
    step.output = At<T>(trace.outputs[l], at);
    step.output_stride = h;
    step.saved = At<T>(trace.gates[l], at);
    step.previous = At<T>(trace.previous[l], at);
    GruForward(step);
  }
}

}  // namespace regard::nn::internal

#endif  // REGARD_NN_ATTENTION_DECODER_CELL_H_
