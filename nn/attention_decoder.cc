#include "nn/attention_decoder.h"

#include <string>

#include "nn/attention_decoder_cell.h"

namespace regard::nn {
namespace {

using internal::At;
using internal::Cell;
using internal::Source;
using internal::Trace;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows that a thread takes at once: more for wide states, whose weights are read again for every block.
std::int64_t BlockOf(std::int64_t hidden) { return hidden <= 128 ? kRowBlock : 2 * kRowBlock; }

// What a forward pass leaves for its backward pass.
struct Memory : torch::CustomClassHolder {
  Packing packing;
  DecoderOptions options;
  bool keep = false;
  Tensor embeddings, keys, values, lengths;
  Tensor queries, contexts, lse;
  std::vector<Tensor> gates, previous, dropped, scales;  // of each layer

  template <typename T>
  Source<T> SourceOf(const Tensor& score) const {
    return {keys, values, lengths, score, 1, options.attention_dropout, options.seed};
  }
};

DecoderWeights Split(at::TensorList all) { return {all[0], all[1], {all.begin() + 2, all.end()}}; }

template <typename T>
variable_list Forward(Memory& memory, const Tensor& h0, const DecoderWeights& weights) {
  const Packing& p = memory.packing;
  const Cell<T> cell(weights, memory.values.size(2));
  Trace<T> trace(cell, memory.embeddings, memory.keys.size(1), memory.keep, memory.options.attention,
                 memory.options.dropout, memory.options.seed);
  const Tensor state = h0.clone(at::MemoryFormat::Contiguous);
  const Source<T> source = memory.SourceOf<T>(cell.score);
  const std::int64_t work = p.total * cell.hidden * cell.hidden * 6 * cell.layers;
  ForRowBlocks(p.rows, BlockOf(cell.hidden), work, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> scratch;
    for (std::size_t t = 0; t < p.sizes.size(); ++t) {
      const std::int64_t rows = std::min(end, p.sizes[t]) - begin;
      if (rows <= 0) break;
      internal::StepForward(cell, source, trace, state, t, begin, rows, p.offsets[t] + begin, scratch);
    }
  });
  if (memory.keep) {
    memory.queries = trace.queries;
    memory.contexts = trace.contexts.detach();  // a result: the same tensor would keep this graph alive
    memory.lse = trace.lse;
    memory.gates = trace.gates;
    memory.previous = trace.previous;
    memory.dropped = trace.dropped;
    memory.scales = trace.scales;
  }
  const Tensor attention = memory.options.attention ? trace.attention : torch::empty({0}, h0.options());
  return {trace.outputs.back(), trace.contexts, attention};
}

// The gradients of a pass, which the steps fill from the last to the first.
template <typename T>
struct Gradients {
  Tensor dstate;                            // [L, N, H]: of the state after the step; ends as that of s_0
  Tensor dkeys, dvalues;                    // as the keys and values, added up over the steps
  Tensor dqueries;                          // [P, D]
  Tensor dcontexts;                         // [P, C]: comes as the upstream gradient
  Tensor dscores;                           // [blocks, D]: one for each block of rows
  std::vector<Tensor> dinputs, drecurrent;  // each layer [P, 3H]: of w_ih x and of w_hh h
  // The weights that take a gradient back through their products
  PackedMatrix<T> query, context;
  std::vector<PackedMatrix<T>> input, recurrent;

  Gradients(const Memory& memory, const DecoderWeights& w, const Tensor& dcontexts_in, std::int64_t block) {
    const std::int64_t layers = static_cast<std::int64_t>(w.gru.size()) / 4, h = w.query.size(1);
    const Packing& p = memory.packing;
    const auto options = memory.keys.options();
    dstate = torch::zeros({layers, p.rows, h}, options);
    dkeys = torch::zeros_like(memory.keys);
    dvalues = torch::zeros_like(memory.values);
    dqueries = torch::zeros_like(memory.queries);
    dcontexts = dcontexts_in.clone(at::MemoryFormat::Contiguous);
    dscores = torch::zeros({(p.rows + block - 1) / block, w.score.size(0)}, options);
    query = PackStraight<T>(w.query);
    context = PackStraight<T>(w.gru[0].slice(1, 0, memory.values.size(2)));
    for (std::int64_t l = 0; l < layers; ++l) {
      dinputs.push_back(torch::empty({p.total, 3 * h}, options));
      drecurrent.push_back(torch::empty({p.total, 3 * h}, options));
      if (l > 0) input.push_back(PackStraight<T>(w.gru[4 * l]));
      recurrent.push_back(PackStraight<T>(w.gru[4 * l + 1]));
    }
  }
};

template <typename T>
void Add(const T* from, std::int64_t n, T* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// The layers of one step, from the top one down; see StepForward.
template <typename T>
void LayersBackward(const Memory& memory, Gradients<T>& g, std::int64_t row, std::int64_t rows,
                    std::int64_t at, std::vector<T>& scratch) {
  const std::int64_t h = g.dstate.size(2), layers = g.dstate.size(0);
  const auto dstate_of = [&](std::int64_t l) {
    return g.dstate.template data_ptr<T>() + (l * g.dstate.size(1) + row) * h;
  };
  scratch.resize(rows * h);
  for (std::int64_t l = layers - 1; l >= 0; --l) {
    GruGatesGradient<T> step;
    step.rows = rows;
    step.hidden = h;
    step.saved = At<T>(memory.gates[l], at);
    step.previous = At<T>(memory.previous[l], at);
    step.dstate = dstate_of(l);
    step.dinput = At<T>(g.dinputs[l], at);
    step.drecurrent = At<T>(g.drecurrent[l], at);
    GruBackward(step);
    Product(step.drecurrent, 3 * h, rows, g.recurrent[l], step.dstate, h, /*accumulate=*/true);
    if (l == 0) continue;
    Product(step.dinput, 3 * h, rows, g.input[l - 1], scratch.data(), h);
    if (memory.scales[l].defined()) {
      const T* scale = At<T>(memory.scales[l], at);
      for (std::int64_t i = 0; i < rows * h; ++i) scratch[i] *= scale[i];
    }
    Add(scratch.data(), rows * h, dstate_of(l - 1));
  }
}

// The attention of one step: from dcontexts to dqueries, dkeys, dvalues, dscores.
template <typename T>
void AttentionStepBackward(const Memory& memory, const Source<T>& source, Gradients<T>& g, T* dscore,
                           std::int64_t t, std::int64_t row, std::int64_t rows, std::int64_t at) {
  const std::int64_t s = memory.keys.size(1), d = memory.keys.size(2), c = memory.values.size(2);
  AttentionUpstream<T> upstream;
  upstream.out = {At<T>(memory.contexts, at), {rows, 1, 1, c}};
  upstream.lse = {At<T>(memory.lse, at), {rows, 1, 1}};
  upstream.dout = TensorView<const T, 4>(At<T>(g.dcontexts, at), {rows, 1, 1, c});
  AttentionGradients<T> gradients;
  gradients.dq = TensorView<T, 4>(At<T>(g.dqueries, at), {rows, 1, 1, d});
  gradients.dk = TensorView<T, 4>(At<T>(g.dkeys, row), {rows, 1, s, d});
  gradients.dv = TensorView<T, 4>(At<T>(g.dvalues, row), {rows, 1, s, c});
  gradients.dw = TensorView<T, 2>(dscore, {1, d});
  gradients.accumulate = true;
  internal::Expect(AttentionBackward(source.Options(t, row, rows),
                                     source.Inputs(row, rows, At<T>(memory.queries, at)), upstream,
                                     gradients));
}

template <typename T>
Gradients<T> StepsBackward(const Memory& memory, const DecoderWeights& w, const Tensor& dstates,
                           const Tensor& dcontexts) {
  const Packing& p = memory.packing;
  const std::int64_t h = w.query.size(1), layers = static_cast<std::int64_t>(w.gru.size()) / 4;
  const std::int64_t c = memory.values.size(2), block = BlockOf(h);
  Gradients<T> g(memory, w, dcontexts, block);
  const Source<T> source = memory.SourceOf<T>(w.score.contiguous());
  ForRowBlocks(p.rows, block, p.total * h * h * 6 * layers, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> scratch;
    T* top = g.dstate.template data_ptr<T>() + ((layers - 1) * p.rows + begin) * h;
    for (std::size_t t = p.sizes.size(); t-- > 0;) {
      const std::int64_t rows = std::min(end, p.sizes[t]) - begin;
      if (rows <= 0) continue;
      const std::int64_t at = p.offsets[t] + begin;
      Add(At<T>(dstates, at), rows * h, top);
      LayersBackward(memory, g, begin, rows, at, scratch);
      Product(At<T>(g.dinputs[0], at), 3 * h, rows, g.context, At<T>(g.dcontexts, at), c,
              /*accumulate=*/true);
      AttentionStepBackward(memory, source, g, At<T>(g.dscores, begin / block), t, begin, rows, at);
      Product(At<T>(g.dqueries, at), memory.keys.size(2), rows, g.query, top, h, /*accumulate=*/true);
    }
  });
  return g;
}

template <typename T>
variable_list Backward(const Memory& memory, const DecoderWeights& w, const Tensor& dstates,
                       const Tensor& dcontexts, bool embeddings_needed) {
  const std::int64_t c = memory.values.size(2), layers = static_cast<std::int64_t>(w.gru.size()) / 4;
  const Gradients<T> g = StepsBackward<T>(memory, w, dstates, dcontexts);
  // The query is made from the top layer's state before the step.
  variable_list dweights{g.dqueries.t().mm(memory.previous.back()), g.dscores.sum(0)};
  for (std::int64_t l = 0; l < layers; ++l) {
    if (l == 0) {
      Tensor dw = torch::empty_like(w.gru[0], at::MemoryFormat::Contiguous);
      dw.slice(1, 0, c).copy_(g.dinputs[0].t().mm(memory.contexts));
      dw.slice(1, c).copy_(g.dinputs[0].t().mm(memory.embeddings));
      dweights.push_back(dw);
    } else {
      dweights.push_back(g.dinputs[l].t().mm(memory.dropped[l]));
    }
    dweights.push_back(g.drecurrent[l].t().mm(memory.previous[l]));
    dweights.push_back(g.dinputs[l].sum(0));
    dweights.push_back(g.drecurrent[l].sum(0));
  }
  variable_list grads{embeddings_needed ? g.dinputs[0].mm(w.gru[0].slice(1, c)) : Tensor(), g.dkeys,
                      g.dvalues, g.dstate};
  grads.insert(grads.end(), dweights.begin(), dweights.end());
  grads.emplace_back();  // the memory
  return grads;
}

class DecoderFunction : public torch::autograd::Function<DecoderFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, const Tensor& embeddings, const Tensor& keys,
                               const Tensor& values, const Tensor& state, at::TensorList weights,
                               c10::intrusive_ptr<Memory> memory) {
    memory->embeddings = embeddings.contiguous();
    memory->keys = keys.contiguous();
    memory->values = values.contiguous();
    if (memory->keep) {
      ctx->save_for_backward(weights.vec());
      ctx->saved_data["memory"] = c10::IValue::make_capsule(memory);
    }
    const auto result = embeddings.scalar_type() == torch::kFloat64
                            ? Forward<double>(*memory, state, Split(weights))
                            : Forward<float>(*memory, state, Split(weights));
    ctx->mark_non_differentiable({result[2]});
    return result;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto capsule = ctx->saved_data["memory"].toCapsule();
    const auto& memory = static_cast<const Memory&>(*capsule);
    const auto weights = Split(ctx->get_saved_variables());
    const Tensor dstates = grads[0].contiguous();
    return dstates.scalar_type() == torch::kFloat64
               ? Backward<double>(memory, weights, dstates, grads[1], ctx->needs_input_grad(0))
               : Backward<float>(memory, weights, dstates, grads[1], ctx->needs_input_grad(0));
  }
};

void ExpectSizes(const std::string& name, const Tensor& tensor, at::IntArrayRef sizes) {
  if (tensor.sizes() == sizes) return;
  throw Error("attention decoder: " + name + " is " + c10::str(tensor.sizes()) + ": expected " +
              c10::str(sizes));
}

void Check(const DecoderInputs& in, const DecoderWeights& w, std::int64_t sentences, std::int64_t rows,
           std::int64_t packed) {
  const auto type = in.embeddings.scalar_type();
  if (!in.embeddings.device().is_cpu() || (type != torch::kFloat32 && type != torch::kFloat64)) {
    throw Error("attention decoder: the embeddings are " + std::string(toString(type)) + " on " +
                in.embeddings.device().str() + ": expected float32 or float64 on the CPU");
  }
  const std::int64_t h = w.query.size(1), d = w.query.size(0), s = in.keys.size(1), c = in.values.size(2);
  const auto layers = static_cast<std::int64_t>(w.gru.size()) / 4;
  ExpectSizes("embeddings", in.embeddings, {packed, w.gru[0].size(1) - c});
  ExpectSizes("keys", in.keys, {sentences, s, d});
  ExpectSizes("values", in.values, {sentences, s, c});
  ExpectSizes("source_lengths", in.source_lengths, {sentences});
  ExpectSizes("state", in.state, {layers, rows, h});
  ExpectSizes("score", w.score, {d});
  for (std::int64_t l = 0; l < layers; ++l) {
    ExpectSizes("w_ih of layer " + std::to_string(l), w.gru[4 * l], {3 * h, l == 0 ? w.gru[0].size(1) : h});
    ExpectSizes("w_hh of layer " + std::to_string(l), w.gru[4 * l + 1], {3 * h, h});
  }
}

}  // namespace

DecoderOutput DecodeSequence(const DecoderInputs& inputs, const DecoderWeights& weights,
                             const Packing& packing, const DecoderOptions& options) {
  Check(inputs, weights, packing.rows, packing.rows, packing.total);
  auto memory = c10::make_intrusive<Memory>();
  memory->packing = packing;
  memory->options = options;
  memory->keep = torch::GradMode::is_enabled();
  memory->lengths = inputs.source_lengths.contiguous();
  std::vector<Tensor> all{weights.query, weights.score};
  all.insert(all.end(), weights.gru.begin(), weights.gru.end());
  const auto result = DecoderFunction::apply(inputs.embeddings, inputs.keys, inputs.values, inputs.state,
                                             at::TensorList(all), memory);
  return {result[0], result[1], options.attention ? result[2] : Tensor()};
}

std::uint64_t AttentionStepSeed(std::uint64_t seed, std::int64_t step, std::int64_t row) {
  // Small numbers name the dropout between layers.
  constexpr std::uint64_t kAttention = std::uint64_t{1} << 32;
  return DeriveSeed(DeriveSeed(seed, kAttention + step), row);
}

struct DecoderStepper::Impl {
  DecoderWeights weights;
  std::unique_ptr<Cell<float>> single;
  std::unique_ptr<Cell<double>> full;
};

DecoderStepper::DecoderStepper(const DecoderWeights& weights, std::int64_t context_size)
    : impl_(new Impl{weights, nullptr, nullptr}) {
  torch::NoGradGuard guard;
  if (weights.query.scalar_type() == torch::kFloat64) {
    impl_->full = std::make_unique<Cell<double>>(weights, context_size);
  } else {
    impl_->single = std::make_unique<Cell<float>>(weights, context_size);
  }
}

DecoderStepper::~DecoderStepper() = default;

namespace {

template <typename T>
DecoderOutput StepOf(const Cell<T>& cell, const DecoderInputs& in, std::int64_t group, bool attention) {
  const Trace<T> trace(cell, in.embeddings.contiguous(), in.keys.size(1), /*keep=*/false, attention, 0, 0);
  Source<T> source{in.keys.contiguous(), in.values.contiguous(), in.source_lengths.contiguous(), cell.score};
  source.group = group;
  const std::int64_t sentences = in.keys.size(0), rows = sentences * group;
  const std::int64_t block = std::max<std::int64_t>(1, BlockOf(cell.hidden) / group);
  ForRowBlocks(sentences, block, rows * cell.hidden * cell.hidden * 6 * cell.layers,
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<T> scratch;
                 internal::StepForward(cell, source, trace, in.state, 0, begin * group, (end - begin) * group,
                                       begin * group, scratch);
               });
  return {trace.outputs.back(), trace.contexts, trace.attention};
}

}  // namespace

DecoderOutput DecoderStepper::Step(const DecoderInputs& inputs, std::int64_t group, bool attention) {
  torch::NoGradGuard guard;
  const std::int64_t rows = inputs.keys.size(0) * group;
  Check(inputs, impl_->weights, inputs.keys.size(0), rows, rows);
  return impl_->full ? StepOf(*impl_->full, inputs, group, attention)
                     : StepOf(*impl_->single, inputs, group, attention);
}

}  // namespace regard::nn
