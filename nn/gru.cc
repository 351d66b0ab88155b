#include "nn/gru.h"

#include <cmath>
#include <string>

#include "engine/base/error.h"
#include "nn/gru_product.h"

namespace regard::nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What one layer keeps for its backward pass, in one direction.
struct Kept {
  Tensor gates;     // [P, 4H]
  Tensor previous;  // [P, H]: the state before each step
};

// What a forward pass leaves for its backward pass.
struct Memory : torch::CustomClassHolder {
  Packing packing;
  GruOptions options;
  bool keep = false;
  std::vector<Tensor> inputs;  // of each layer [P, I or D H], after dropout
  std::vector<Tensor> scales;  // of the dropout before each layer (undefined: none)
  std::vector<Kept> kept;      // of each layer and direction

  std::int64_t directions() const { return options.bidirectional ? 2 : 1; }
  // The i-th step that a direction takes.
  std::size_t Step(std::size_t i, bool reverse) const { return reverse ? packing.sizes.size() - 1 - i : i; }
};

struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh;
};
Weights WeightsOf(at::TensorList all, std::size_t which) {
  return {all[4 * which].contiguous(), all[4 * which + 1].contiguous(), all[4 * which + 2].contiguous(),
          all[4 * which + 3].contiguous()};
}

// One layer in one direction. state [N, H]: h0, becomes the final state; output [P, H], rows `stride` apart.
template <typename T>
Kept LayerForward(const Memory& memory, const Tensor& x, const Weights& w, bool reverse, T* state, T* output,
                  std::int64_t stride) {
  const Packing& p = memory.packing;
  const std::int64_t h = w.w_hh.size(1);
  Kept kept;
  if (memory.keep) {
    kept.gates = torch::empty({p.total, 4 * h}, x.options());
    kept.previous = torch::empty({p.total, h}, x.options());
  }
  T* gates = memory.keep ? kept.gates.data_ptr<T>() : nullptr;
  T* previous = memory.keep ? kept.previous.data_ptr<T>() : nullptr;
  const auto recurrent = PackTransposed<T>(w.w_hh, w.b_hh);
  const Tensor inputs = ProductAll(x, PackTransposed<T>(w.w_ih, w.b_ih));
  const T* input = inputs.data_ptr<T>();
  ForRowBlocks(p.rows, kRowBlock, p.total * 3 * h * h, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> products((end - begin) * 3 * h);
    for (std::size_t i = 0; i < p.sizes.size(); ++i) {
      const std::size_t t = memory.Step(i, reverse);
      const std::int64_t rows = std::min(end, p.sizes[t]) - begin;
      if (rows <= 0) continue;
      const std::int64_t at = p.offsets[t] + begin;
      Product(state + begin * h, h, rows, recurrent, products.data(), 3 * h);
      GruGates<T> step;
      step.rows = rows;
      step.hidden = h;
      step.input = input + at * 3 * h;
      step.recurrent = products.data();
      step.state = state + begin * h;
      step.output = output + at * stride;
      step.output_stride = stride;
      step.saved = gates ? gates + at * 4 * h : nullptr;
      step.previous = previous ? previous + at * h : nullptr;
      GruForward(step);
    }
  });
  return kept;
}

// The gradients of one layer in one direction: dstate [N, H] comes as that of the final state and leaves as
// that of h0; doutput [P, H], rows `stride` apart. dinput, drecurrent [P, 3H] are those of the two products.
template <typename T>
void LayerBackward(const Memory& memory, const Kept& kept, const Tensor& w_hh, bool reverse, T* dstate,
                   const T* doutput, std::int64_t stride, T* dinput, T* drecurrent) {
  const Packing& p = memory.packing;
  const std::int64_t h = w_hh.size(1);
  const T* gates = kept.gates.data_ptr<T>();
  const T* previous = kept.previous.data_ptr<T>();
  const auto back = PackStraight<T>(w_hh);
  ForRowBlocks(p.rows, kRowBlock, p.total * 3 * h * h, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t i = p.sizes.size(); i-- > 0;) {
      const std::size_t t = memory.Step(i, reverse);
      const std::int64_t rows = std::min(end, p.sizes[t]) - begin;
      if (rows <= 0) continue;
      const std::int64_t at = p.offsets[t] + begin;
      for (std::int64_t r = 0; r < rows; ++r) {
        T* to = dstate + (begin + r) * h;
        const T* from = doutput + (at + r) * stride;
        for (std::int64_t j = 0; j < h; ++j) to[j] += from[j];
      }
      GruGatesGradient<T> step;
      step.rows = rows;
      step.hidden = h;
      step.saved = gates + at * 4 * h;
      step.previous = previous + at * h;
      step.dstate = dstate + begin * h;
      step.dinput = dinput + at * 3 * h;
      step.drecurrent = drecurrent + at * 3 * h;
      GruBackward(step);
      Product(step.drecurrent, 3 * h, rows, back, step.dstate, h, /*accumulate=*/true);
    }
  });
}

template <typename T>
variable_list Forward(Memory& memory, const Tensor& x, Tensor state, at::TensorList weights) {
  const std::int64_t d = memory.directions(), h = state.size(2);
  Tensor input = x;
  for (std::int64_t layer = 0; layer < memory.options.layers; ++layer) {
    Tensor scales;
    if (layer > 0 && memory.options.dropout > 0) {
      scales = torch::empty_like(input);
      DropoutScales(DeriveSeed(memory.options.seed, layer), memory.options.dropout, scales.numel(),
                    scales.data_ptr<T>());
      input = input * scales;
    }
    Tensor output = torch::empty({memory.packing.total, d * h}, x.options());
    for (std::int64_t dir = 0; dir < d; ++dir) {
      const std::size_t which = layer * d + dir;
      memory.kept.push_back(LayerForward<T>(memory, input, WeightsOf(weights, which), dir == 1,
                                            state[which].data_ptr<T>(), output.data_ptr<T>() + dir * h,
                                            d * h));
    }
    if (memory.keep) {
      memory.inputs.push_back(input);
      memory.scales.push_back(scales);
    }
    input = output;
  }
  return {input, state};
}

template <typename T>
variable_list Backward(const Memory& memory, AutogradContext* ctx, at::TensorList weights, Tensor doutput,
                       Tensor dstate) {
  const Packing& p = memory.packing;
  const std::int64_t d = memory.directions(), h = dstate.size(2);
  variable_list dweights(weights.size());
  for (std::int64_t layer = memory.options.layers - 1; layer >= 0; --layer) {
    const Tensor& input = memory.inputs[layer];
    Tensor dlayer_input;
    for (std::int64_t dir = 0; dir < d; ++dir) {
      const std::size_t which = layer * d + dir;
      const Weights w = WeightsOf(weights, which);
      auto dinput = torch::empty({p.total, 3 * h}, input.options());
      auto drecurrent = torch::empty_like(dinput);
      LayerBackward<T>(memory, memory.kept[which], w.w_hh, dir == 1, dstate[which].data_ptr<T>(),
                       doutput.data_ptr<T>() + dir * h, d * h, dinput.template data_ptr<T>(),
                       drecurrent.template data_ptr<T>());
      dweights[4 * which] = dinput.t().mm(input);
      dweights[4 * which + 1] = drecurrent.t().mm(memory.kept[which].previous);
      dweights[4 * which + 2] = dinput.sum(0);
      dweights[4 * which + 3] = drecurrent.sum(0);
      if (layer > 0 || ctx->needs_input_grad(0)) {
        const Tensor part = dinput.mm(w.w_ih);
        dlayer_input = dlayer_input.defined() ? dlayer_input + part : part;
      }
    }
    if (layer > 0 && memory.scales[layer].defined()) dlayer_input.mul_(memory.scales[layer]);
    doutput = dlayer_input;
  }
  variable_list grads{doutput, dstate};
  grads.insert(grads.end(), dweights.begin(), dweights.end());
  grads.emplace_back();  // the memory
  return grads;
}

class GruFunction : public torch::autograd::Function<GruFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& h0,
                               at::TensorList weights, c10::intrusive_ptr<Memory> memory) {
    if (memory->keep) {
      ctx->save_for_backward(weights.vec());
      ctx->saved_data["memory"] = c10::IValue::make_capsule(memory);
    }
    const Tensor state = h0.clone(at::MemoryFormat::Contiguous);
    return x.scalar_type() == torch::kFloat64 ? Forward<double>(*memory, x.contiguous(), state, weights)
                                              : Forward<float>(*memory, x.contiguous(), state, weights);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto capsule = ctx->saved_data["memory"].toCapsule();
    const auto& memory = static_cast<const Memory&>(*capsule);
    const auto weights = ctx->get_saved_variables();
    const Tensor doutput = grads[0].contiguous();
    const Tensor dstate = grads[1].clone(at::MemoryFormat::Contiguous);
    return doutput.scalar_type() == torch::kFloat64 ? Backward<double>(memory, ctx, weights, doutput, dstate)
                                                    : Backward<float>(memory, ctx, weights, doutput, dstate);
  }
};

void Check(const Tensor& x, const Tensor& h0, const std::vector<Tensor>& weights, const Packing& packing,
           const GruOptions& options) {
  const std::int64_t all = options.layers * (options.bidirectional ? 2 : 1);
  const auto fail = [](const std::string& message) { throw Error("GRU: " + message); };
  if (!x.device().is_cpu()) fail("the input is on " + x.device().str() + ": expected the CPU");
  if (x.scalar_type() != torch::kFloat32 && x.scalar_type() != torch::kFloat64) {
    fail("the input is " + std::string(toString(x.scalar_type())) + ": expected float32 or float64");
  }
  if (x.dim() != 2 || x.size(0) != packing.total) {
    fail("the input is " + c10::str(x.sizes()) + ": expected " + std::to_string(packing.total) +
         " packed rows");
  }
  if (h0.dim() != 3 || h0.size(0) != all || h0.size(1) != packing.rows) {
    fail("h0 is " + c10::str(h0.sizes()) + ": expected [" + std::to_string(all) + ", " +
         std::to_string(packing.rows) + ", hidden]");
  }
  if (static_cast<std::int64_t>(weights.size()) != 4 * all) {
    fail(std::to_string(weights.size()) + " weights: expected " + std::to_string(4 * all));
  }
}

}  // namespace

GruOutput GruSequence(const Tensor& x, const Tensor& h0, const std::vector<Tensor>& weights,
                      const Packing& packing, const GruOptions& options) {
  Check(x, h0, weights, packing, options);
  auto memory = c10::make_intrusive<Memory>();
  memory->packing = packing;
  memory->options = options;
  memory->keep = torch::GradMode::is_enabled();
  const auto result = GruFunction::apply(x, h0, at::TensorList(weights), memory);
  return {result[0], result[1]};
}

GruImpl::GruImpl(std::int64_t input_size, std::int64_t hidden_size, std::int64_t layers, bool bidirectional,
                 double dropout)
    : hidden_(hidden_size) {
  options_.layers = layers;
  options_.bidirectional = bidirectional;
  options_.dropout = dropout;
  const std::int64_t directions = bidirectional ? 2 : 1;
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const auto add = [&](const std::string& name, at::IntArrayRef sizes) {
    weights_.push_back(register_parameter(name, torch::empty(sizes).uniform_(-bound, bound)));
  };
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::int64_t width = layer == 0 ? input_size : directions * hidden_size;
    for (std::int64_t dir = 0; dir < directions; ++dir) {
      const std::string suffix = "_l" + std::to_string(layer) + (dir == 1 ? "_reverse" : "");
      add("weight_ih" + suffix, {3 * hidden_size, width});
      add("weight_hh" + suffix, {3 * hidden_size, hidden_size});
      add("bias_ih" + suffix, {3 * hidden_size});
      add("bias_hh" + suffix, {3 * hidden_size});
    }
  }
}

GruOutput GruImpl::forward(const Tensor& x, const Packing& packing, const Tensor& h0, std::uint64_t seed) {
  GruOptions options = options_;
  options.seed = seed;
  if (!is_training()) options.dropout = 0;
  const std::int64_t all = options.layers * (options.bidirectional ? 2 : 1);
  return GruSequence(x, h0.defined() ? h0 : torch::zeros({all, packing.rows, hidden_}, x.options()), weights_,
                     packing, options);
}

}  // namespace regard::nn
