// The operator: schema, registration, shapes (meta) and autograd.
//
// Kernels are boxed: each takes its arguments from the dispatcher's stack by way of PopCall, so the long list
// of arguments is written down once for all of them.
#include "nn/attend_op.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace regard::nn {
namespace {

using c10::IValue;
using torch::jit::Stack;

// --- Arguments -------------------------------------------------------------------------------------------

constexpr char kArguments[] =
    "Tensor q, Tensor k, Tensor v, *, Tensor? bias=None, Tensor? additive_weight=None, "
    "Tensor? precision=None, Tensor? alibi_slopes=None, Tensor? lengths=None, Tensor? query_segments=None, "
    "Tensor? key_segments=None, Tensor? blocks=None, Tensor? keep=None, str score=\"scaled_dot\", "
    "float? scale=None, float eps=1e-8, float? softcap=None, str corner=\"top_left\", bool causal=False, "
    "int? window_left=None, int? window_right=None, int block_queries=0, int block_keys=0, "
    "bool exclude_self=False, str normalizer=\"softmax\", float dropout=0.0, SymInt seed=0, "
    "bool return_lse=False, bool return_weights=False";
constexpr char kUpstream[] =
    ", Tensor out, Tensor lse, Tensor index, Tensor? dout, Tensor? dlse, Tensor? dweights, "
    "Tensor? dlog_prob, bool[6] needs";

constexpr std::array kScores{"scaled_dot", "dot",        "cosine",       "additive", "gaussian",
                             "boxcar",     "triangular", "epanechnikov", "tricube"};
constexpr std::array kCorners{"top_left", "bottom_right"};
constexpr std::array kNormalizers{"softmax", "argmax", "sample"};

template <typename Kind, std::size_t kCount>
Kind KindOf(const char* argument, const std::string& name, const std::array<const char*, kCount>& names) {
  std::string all;
  for (std::size_t n = 0; n < kCount; ++n) {
    if (name == names[n]) return static_cast<Kind>(n);
    all += std::string(n == 0 ? "" : ", ") + names[n];
  }
  TORCH_CHECK_VALUE(false, argument, " is \"", name, "\"; expected one of ", all);
}

template <typename Kind, std::size_t kCount>
IValue NameOf(Kind kind, const std::array<const char*, kCount>& names) {
  return std::string(names[static_cast<std::size_t>(kind)]);
}

at::Tensor TensorOf(const IValue& value) { return value.isNone() ? at::Tensor() : value.toTensor(); }
IValue ValueOf(const at::Tensor& tensor) { return tensor.defined() ? IValue(tensor) : IValue(); }

// Reads the arguments from `arg` on, in the order of kArguments, and leaves it behind the last.
AttendCall ReadCall(Stack::const_iterator* arg) {
  const auto next = [&]() -> const IValue& { return *(*arg)++; };
  AttendCall call;
  for (at::Tensor* tensor : call.Tensors()) *tensor = TensorOf(next());
  AttendOptions& o = call.options;
  o.score = KindOf<ScoreKind>("score", next().toStringRef(), kScores);
  o.scale = next().toOptional<double>();
  o.eps = next().toDouble();
  o.softcap = next().toOptional<double>();
  o.corner = KindOf<Corner>("corner", next().toStringRef(), kCorners);
  o.causal = next().toBool();
  o.window_left = next().toOptional<std::int64_t>();
  o.window_right = next().toOptional<std::int64_t>();
  o.block_queries = next().toInt();
  o.block_keys = next().toInt();
  o.exclude_self = next().toBool();
  o.normalizer = KindOf<NormalizerKind>("normalizer", next().toStringRef(), kNormalizers);
  o.dropout = next().toDouble();
  call.seed = next().toSymInt();
  o.return_lse = next().toBool();
  o.return_weights = next().toBool();
  return call;
}

void PushCall(AttendCall call, Stack* stack) {
  for (const at::Tensor* tensor : call.Tensors()) stack->push_back(ValueOf(*tensor));
  const AttendOptions& o = call.options;
  torch::jit::push(*stack, NameOf(o.score, kScores), o.scale, o.eps, o.softcap, NameOf(o.corner, kCorners),
                   o.causal, o.window_left, o.window_right, o.block_queries, o.block_keys, o.exclude_self,
                   NameOf(o.normalizer, kNormalizers), o.dropout, call.seed, o.return_lse, o.return_weights);
}

// Takes the operator's arguments off the stack.
std::pair<AttendCall, AttendUpstream> Pop(const c10::OperatorHandle& op, Stack* stack) {
  const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  auto arg = stack->cend() - count;
  std::pair<AttendCall, AttendUpstream> popped{ReadCall(&arg), {}};
  AttendUpstream& up = popped.second;
  if (arg != stack->cend()) {
    for (at::Tensor* tensor :
         {&up.out, &up.lse, &up.index, &up.dout, &up.dlse, &up.dweights, &up.dlog_prob}) {
      *tensor = TensorOf(*arg++);
    }
    const auto needs = arg->toBoolList();
    for (std::size_t n = 0; n < up.needs.size(); ++n) up.needs[n] = needs.get(n);
  }
  stack->erase(stack->cend() - count, stack->cend());
  return popped;
}

AttendCall PopCall(const c10::OperatorHandle& op, Stack* stack) { return Pop(op, stack).first; }

template <std::size_t kCount>
void PushTensors(const std::array<at::Tensor, kCount>& tensors, Stack* stack) {
  for (const at::Tensor& tensor : tensors) stack->emplace_back(tensor);
}

template <std::size_t kCount>
std::array<at::Tensor, kCount> PopTensors(Stack* stack) {
  std::array<at::Tensor, kCount> tensors;
  for (std::size_t n = 0; n < kCount; ++n) tensors[n] = TensorOf((*stack)[stack->size() - kCount + n]);
  torch::jit::drop(*stack, kCount);
  return tensors;
}

// --- Backends --------------------------------------------------------------------------------------------

void EngineKernel(const c10::OperatorHandle& op, Stack* stack) {
  const AttendCall call = PopCall(op, stack);
  CheckAttendCall(call);
  PushTensors(EngineAttend(call), stack);
}

void EngineBackwardKernel(const c10::OperatorHandle& op, Stack* stack) {
  const auto [call, upstream] = Pop(op, stack);
  PushTensors(EngineAttendBackward(call, upstream), stack);
}

void FallbackKernel(const c10::OperatorHandle& op, Stack* stack) {
  const AttendCall call = PopCall(op, stack);
  CheckAttendCall(call);
  PushTensors(FallbackAttend(call), stack);
}

void MetaKernel(const c10::OperatorHandle& op, Stack* stack) {
  const AttendCall call = PopCall(op, stack);
  CheckAttendCall(call);
  const AttendOptions& o = call.options;
  const auto B = call.q.sym_size(0), H = call.q.sym_size(1), L = call.q.sym_size(2), S = call.k.sym_size(2);
  const auto like = call.q.options();
  const auto sums = like.dtype(SumType(call));
  const auto empty = [](bool wanted, std::vector<c10::SymInt> sizes, const at::TensorOptions& options) {
    return at::empty_symint(wanted ? std::move(sizes) : std::vector<c10::SymInt>{0}, options);
  };
  AttendOutputs outputs;
  outputs[kOut] = empty(true, {B, H, L, call.v.sym_size(3)}, like);
  outputs[kLse] = empty(o.return_lse, {B, H, L}, sums);
  outputs[kWeights] = empty(o.return_weights, {B, H, L, S}, like);
  outputs[kIndex] = empty(IsHard(call), {B, H, L}, like.dtype(at::kLong));
  outputs[kLogProb] = empty(IsHard(call), {B, H, L}, sums);
  PushTensors(outputs, stack);
}

void MetaBackwardKernel(const c10::OperatorHandle& op, Stack* stack) {
  auto [call, upstream] = Pop(op, stack);
  AttendGradients gradients;
  for (std::size_t n = 0; n < gradients.size(); ++n) {
    const at::Tensor& input = *call.Tensors()[n];
    if (upstream.needs[n]) gradients[n] = at::empty_symint(input.sym_sizes(), input.options());
  }
  PushTensors(gradients, stack);
}

// --- Autograd --------------------------------------------------------------------------------------------

const c10::OperatorHandle& Operator() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("regard::attend", "");
  return op;
}

const c10::OperatorHandle& BackwardOperator() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("regard::attend_backward", "");
  return op;
}

// A call without its tensors, as a saved value of the graph.
struct SavedCall : torch::CustomClassHolder {
  explicit SavedCall(AttendCall call_) : call(std::move(call_)) {
    for (at::Tensor* tensor : call.Tensors()) *tensor = at::Tensor();
  }
  AttendCall call;
};

// The gradient on the CPU: regard::attend_backward, from lse and the outputs.
struct AttendFunction : torch::autograd::Function<AttendFunction> {
  using Context = torch::autograd::AutogradContext;
  using List = torch::autograd::variable_list;
  using Optional = const std::optional<at::Tensor>&;

  // The differentiable tensors are arguments of their own, for the graph's edges.
  static List forward(Context* ctx, Optional /*q*/, Optional /*k*/, Optional /*v*/, Optional /*bias*/,
                      Optional /*additive_weight*/, Optional /*precision*/, AttendCall call) {
    at::AutoDispatchBelowADInplaceOrView guard;
    const bool return_lse = std::exchange(call.options.return_lse, true);
    const AttendOutputs outputs = DispatchAttend(call);
    List saved;
    for (const at::Tensor* tensor : call.Tensors()) saved.push_back(*tensor);
    saved.insert(saved.end(), {outputs[kOut], outputs[kLse], outputs[kIndex]});
    ctx->save_for_backward(saved);
    ctx->saved_data["call"] = IValue::make_capsule(c10::make_intrusive<SavedCall>(call));
    ctx->set_materialize_grads(false);

    List returned(outputs.begin(), outputs.end()), constant{outputs[kIndex]};
    if (!return_lse) returned[kLse] = at::empty({0}, outputs[kLse].options());
    if (!return_lse) constant.push_back(returned[kLse]);
    if (!call.options.return_weights) constant.push_back(returned[kWeights]);
    if (!IsHard(call)) constant.push_back(returned[kLogProb]);
    ctx->mark_non_differentiable(constant);
    return returned;
  }

  static List backward(Context* ctx, const List& d) {
    AttendCall call =
        c10::static_intrusive_pointer_cast<SavedCall>(ctx->saved_data["call"].toCapsule())->call;
    const List saved = ctx->get_saved_variables();
    for (std::size_t n = 0; n < AttendCall::kTensors; ++n) *call.Tensors()[n] = saved[n];
    List gradients(AttendCall::kDifferentiable + 1);  // none for the call itself
    if (!d[kOut].defined() && !d[kLse].defined() && !d[kWeights].defined() && !d[kLogProb].defined()) {
      return gradients;
    }
    c10::List<bool> needs;
    bool any = false;
    for (std::size_t n = 0, edge = 0; n < AttendCall::kDifferentiable; ++n) {
      needs.push_back(saved[n].defined() && ctx->needs_input_grad(edge++));
      any = any || needs.get(n);
    }
    if (!any) return gradients;

    Stack stack;
    PushCall(call, &stack);
    const at::Tensor* forward = &saved[AttendCall::kTensors];
    torch::jit::push(stack, forward[0], forward[1], forward[2], ValueOf(d[kOut]), ValueOf(d[kLse]),
                     ValueOf(d[kWeights]), ValueOf(d[kLogProb]), needs);
    BackwardOperator().callBoxed(stack);
    const auto results = PopTensors<AttendCall::kDifferentiable>(&stack);
    std::copy(results.begin(), results.end(), gradients.begin());
    return gradients;
  }
};

void AutogradKernel(const c10::OperatorHandle& op, Stack* stack) {
  AttendCall call = PopCall(op, stack);
  const c10::Device device = call.q.device();
  const bool engine = device.is_cpu() || device.is_meta();
  bool needed = false;
  const auto tensors = call.Tensors();
  for (std::size_t n = 0; n < AttendCall::kDifferentiable; ++n) {
    needed = needed || (tensors[n]->defined() && tensors[n]->requires_grad());
  }
  needed = needed && at::GradMode::is_enabled();
  if (needed && engine) {
    const auto optional = [](const at::Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; };
    const auto outputs = AttendFunction::apply(
        optional(call.q), optional(call.k), optional(call.v), optional(call.options.bias),
        optional(call.options.additive_weight), optional(call.options.precision), call);
    for (const at::Tensor& output : outputs) stack->emplace_back(output);
  } else if (needed) {  // ATen's own autograd differentiates the fallback
    CheckAttendCall(call);
    PushTensors(FallbackAttend(call), stack);
  } else {
    at::AutoDispatchBelowADInplaceOrView guard;
    PushTensors(DispatchAttend(call), stack);
  }
}

std::string Version() { return REGARD_VERSION; }

}  // namespace

std::array<at::Tensor*, AttendCall::kTensors> AttendCall::Tensors() {
  AttendOptions& o = options;
  return {&q,
          &k,
          &v,
          &o.bias,
          &o.additive_weight,
          &o.precision,
          &o.alibi_slopes,
          &o.lengths,
          &o.query_segments,
          &o.key_segments,
          &o.blocks,
          &o.keep};
}

std::optional<CompactKernel> CompactKernelOf(ScoreKind score) {
  if (score < ScoreKind::kBoxcar) return std::nullopt;
  return static_cast<CompactKernel>(static_cast<int>(score) - static_cast<int>(ScoreKind::kBoxcar));
}

double ResolvedScale(const AttendCall& call) {
  if (call.options.scale) return *call.options.scale;
  if (call.options.score != ScoreKind::kScaledDot) return 1.0;
  return 1.0 / std::sqrt(static_cast<double>(call.q.size(3)));
}

AttendOutputs DispatchAttend(const AttendCall& call) {
  Stack stack;
  PushCall(call, &stack);
  Operator().callBoxed(stack);
  return PopTensors<kAttendOutputs>(&stack);
}

TORCH_LIBRARY(regard, m) {
  const auto define = [&m](const std::string& schema) {
    m.def(torch::schema(schema.c_str()), {at::Tag::pt2_compliant_tag});
  };
  define(std::string("attend(") + kArguments +
         ") -> (Tensor out, Tensor lse, Tensor weights, Tensor index, Tensor log_prob)");
  define(std::string("attend_backward(") + kArguments + kUpstream +
         ") -> (Tensor dq, Tensor dk, Tensor dv, Tensor dbias, Tensor dadditive_weight, Tensor dprecision)");
  m.def("version() -> str", Version);
}

TORCH_LIBRARY_IMPL(regard, CPU, m) {
  m.impl("attend", torch::CppFunction::makeFromBoxedFunction<&EngineKernel>());
  m.impl("attend_backward", torch::CppFunction::makeFromBoxedFunction<&EngineBackwardKernel>());
}

TORCH_LIBRARY_IMPL(regard, CompositeExplicitAutograd, m) {
  m.impl("attend", torch::CppFunction::makeFromBoxedFunction<&FallbackKernel>());
}

TORCH_LIBRARY_IMPL(regard, Meta, m) {
  m.impl("attend", torch::CppFunction::makeFromBoxedFunction<&MetaKernel>());
  m.impl("attend_backward", torch::CppFunction::makeFromBoxedFunction<&MetaBackwardKernel>());
}

TORCH_LIBRARY_IMPL(regard, Autograd, m) {
  m.impl("attend", torch::CppFunction::makeFromBoxedFunction<&AutogradKernel>());
  m.impl("attend_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace regard::nn
