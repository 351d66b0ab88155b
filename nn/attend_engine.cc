// regard::attend on the CPU: the engine on views of the tensors.
#include <optional>
#include <vector>

#include "nn/attend_op.h"
#include "nn/torch_threads.h"
#include "regard/attention.h"

namespace regard::nn {
namespace {

// A view with leading dimensions of 1 where the tensor has fewer.
template <typename T, std::size_t kRank>
TensorView<T, kRank> View(const char* name, const at::Tensor& t) {
  TORCH_CHECK_VALUE(t.dim() <= static_cast<std::int64_t>(kRank), name, " has shape ", t.sizes(),
                    "; expected at most ", kRank, " dimensions");
  TensorView<T, kRank> view;
  const auto missing = kRank - static_cast<std::size_t>(t.dim());
  for (std::size_t d = 0; d < kRank; ++d) {
    view.shape[d] = d < missing ? 1 : t.size(static_cast<std::int64_t>(d - missing));
    view.strides[d] = d < missing ? 0 : t.stride(static_cast<std::int64_t>(d - missing));
  }
  view.data = static_cast<T*>(const_cast<void*>(t.const_data_ptr()));
  return view;
}

template <typename T>
constexpr at::ScalarType kType = at::kFloat;
template <>
constexpr at::ScalarType kType<double> = at::kDouble;
template <>
constexpr at::ScalarType kType<BFloat16> = at::kBFloat16;
template <>
constexpr at::ScalarType kType<Float16> = at::kHalf;

// The engine's view of a call, and the converted tensors that it looks at. q, k and v are taken as they are
// where the engine has their type T; everything else is converted to the type of the sums.
template <typename T>
class Prepared {
  using Sum = regard::SumType<T>;

 public:
  explicit Prepared(const AttendCall& call) {
    inputs = {Floats<T, 4>("q", call.q), Floats<T, 4>("k", call.k), Floats<T, 4>("v", call.v)};
    const AttendOptions& o = call.options;
    SetScore(call);
    options.softcap = o.softcap;
    if (o.bias.defined()) options.bias = Floats<Sum, 4>("bias", o.bias);
    if (o.alibi_slopes.defined())
      options.alibi = Alibi<Sum>{Floats<Sum, 1>("alibi_slopes", o.alibi_slopes), o.corner};
    SetMask(o);
    const auto seed = static_cast<std::uint64_t>(call.seed.expect_int());
    if (o.normalizer == NormalizerKind::kArgmax) options.normalizer = Argmax{};
    if (o.normalizer == NormalizerKind::kSample) options.normalizer = Sample{seed};
    options.dropout = {o.dropout, seed};
    options.threads = at::get_num_threads();
    options.parallel_for = TorchParallelFor;
  }

  AttentionOptions<Sum> options;
  AttentionInputs<T> inputs;

 private:
  template <typename To, std::size_t kRank>
  TensorView<const To, kRank> Floats(const char* name, const at::Tensor& t) {
    TORCH_CHECK_VALUE(at::isFloatingType(t.scalar_type()), name, " is ", t.scalar_type(),
                      "; expected a floating type");
    kept_.push_back(t.detach().to(kType<To>));
    return View<const To, kRank>(name, kept_.back());
  }

  TensorView<const std::int64_t, 2> Integers(const char* name, const at::Tensor& t) {
    TORCH_CHECK_VALUE(at::isIntegralType(t.scalar_type(), /*includeBool=*/false), name, " is ",
                      t.scalar_type(), "; expected an integer type");
    kept_.push_back(t.to(at::kLong));
    return View<const std::int64_t, 2>(name, kept_.back());
  }

  TensorView<const bool, 4> Booleans(const char* name, const at::Tensor& t) {
    TORCH_CHECK_VALUE(t.scalar_type() == at::kBool, name, " is ", t.scalar_type(), "; expected bool");
    return View<const bool, 4>(name, t);
  }

  void SetScore(const AttendCall& call) {
    const AttendOptions& o = call.options;
    switch (o.score) {
      case ScoreKind::kScaledDot:
      case ScoreKind::kDot:
        options.score = Dot{call.q.size(3) == 0 ? 0.0 : ResolvedScale(call)};
        break;
      case ScoreKind::kCosine:
        options.score = Cosine{ResolvedScale(call), o.eps};
        break;
      case ScoreKind::kAdditive:
        options.score = Additive<Sum>{Floats<Sum, 2>("additive_weight", o.additive_weight)};
        break;
      case ScoreKind::kGaussian:
        options.score = Gaussian<Sum>{Floats<Sum, 1>("precision", o.precision)};
        break;
      case ScoreKind::kBoxcar:
      case ScoreKind::kTriangular:
      case ScoreKind::kEpanechnikov:
      case ScoreKind::kTricube:
        options.score = Compact<Sum>{*CompactKernelOf(o.score), Floats<Sum, 1>("precision", o.precision)};
        break;
    }
  }

  void SetMask(const AttendOptions& o) {
    Mask& mask = options.mask;
    if (o.causal) mask.causal = Causal{o.corner};
    if (o.window_left || o.window_right) mask.window = Window{o.window_left, o.window_right, o.corner};
    if (o.lengths.defined()) {
      mask.lengths = Lengths{Integers("lengths", o.lengths.dim() == 1 ? o.lengths.unsqueeze(1) : o.lengths)};
    }
    if (o.query_segments.defined()) {
      mask.segments =
          Segments{Integers("query_segments", o.query_segments), Integers("key_segments", o.key_segments)};
    }
    if (o.blocks.defined()) {
      mask.blocks = Blocks{Booleans("blocks", o.blocks), o.block_queries, o.block_keys};
    }
    if (o.keep.defined()) mask.keep = Keep{Booleans("keep", o.keep)};
    mask.exclude_self = o.exclude_self;
  }

  std::vector<at::Tensor> kept_;
};

void Check(const Status& status) { TORCH_CHECK_VALUE(status.ok(), status.message()); }

template <typename T, std::size_t kRank>
std::optional<TensorView<T, kRank>> ViewIf(bool wanted, const char* name, const at::Tensor& t) {
  if (!wanted) return std::nullopt;
  return View<T, kRank>(name, t);
}

template <typename T>
AttendOutputs Forward(const AttendCall& call, const at::Tensor& out) {
  const Prepared<T> prepared(call);
  const AttendOptions& o = call.options;
  const bool hard = IsHard(call);
  const std::int64_t B = call.q.size(0), H = call.q.size(1), L = call.q.size(2), S = call.k.size(2);
  using Sum = regard::SumType<T>;
  AttendOutputs r;
  r[kOut] = out.defined() ? out : at::empty({B, H, L, call.v.size(3)}, kType<T>);
  r[kLse] = at::empty(o.return_lse ? at::DimVector{B, H, L} : at::DimVector{0}, kType<Sum>);
  r[kWeights] = at::empty(o.return_weights ? at::DimVector{B, H, L, S} : at::DimVector{0}, kType<T>);
  r[kIndex] = at::empty(hard ? at::DimVector{B, H, L} : at::DimVector{0}, at::kLong);
  r[kLogProb] = at::empty(hard ? at::DimVector{B, H, L} : at::DimVector{0}, kType<Sum>);
  AttentionOutputs<T> outputs;
  outputs.out = View<T, 4>("out", r[kOut]);
  outputs.lse = ViewIf<Sum, 3>(o.return_lse, "lse", r[kLse]);
  outputs.weights = ViewIf<T, 4>(o.return_weights, "weights", r[kWeights]);
  outputs.index = ViewIf<std::int64_t, 3>(hard, "index", r[kIndex]);
  outputs.log_prob = ViewIf<Sum, 3>(hard, "log_prob", r[kLogProb]);
  Check(AttentionForward(prepared.options, prepared.inputs, outputs));
  r[kOut] = r[kOut].to(call.q.scalar_type());
  r[kWeights] = r[kWeights].to(call.q.scalar_type());
  return r;
}

template <typename T>
AttendGradients Backward(const AttendCall& call, const AttendUpstream& up, const AttendGradients& into) {
  const Prepared<T> prepared(call);
  std::vector<at::Tensor> kept;
  const auto as = [&](at::ScalarType type, const at::Tensor& t) -> const at::Tensor& {
    kept.push_back(t.defined() ? t.detach().to(type) : t);
    return kept.back();
  };
  using Sum = regard::SumType<T>;
  kept.reserve(8);
  AttentionUpstream<T> upstream;
  upstream.out = View<const T, 4>("out", as(kType<T>, up.out));
  upstream.lse = View<const Sum, 3>("lse", as(kType<Sum>, up.lse));
  upstream.index = ViewIf<const std::int64_t, 3>(IsHard(call), "index", up.index);
  upstream.dout = ViewIf<const T, 4>(up.dout.defined(), "dout", as(kType<T>, up.dout));
  upstream.dlse = ViewIf<const Sum, 3>(up.dlse.defined(), "dlse", as(kType<Sum>, up.dlse));
  upstream.dweights = ViewIf<const T, 4>(up.dweights.defined(), "dweights", as(kType<T>, up.dweights));
  upstream.dlog_prob =
      ViewIf<const Sum, 3>(up.dlog_prob.defined(), "dlog_prob", as(kType<Sum>, up.dlog_prob));

  AttendCall inputs = call;
  const auto tensors = inputs.Tensors();
  AttendGradients r = into;
  for (std::size_t n = 0; n < r.size(); ++n) {
    if (up.needs[n] && !r[n].defined()) r[n] = at::empty(tensors[n]->sizes(), n < 3 ? kType<T> : kType<Sum>);
  }
  AttentionGradients<T> gradients;
  gradients.dq = ViewIf<T, 4>(up.needs[0], "dq", r[0]);
  gradients.dk = ViewIf<T, 4>(up.needs[1], "dk", r[1]);
  gradients.dv = ViewIf<T, 4>(up.needs[2], "dv", r[2]);
  gradients.dbias = ViewIf<Sum, 4>(up.needs[3], "dbias", r[3]);
  gradients.dw = ViewIf<Sum, 2>(up.needs[4], "dw", r[4]);
  gradients.dprecision = ViewIf<Sum, 1>(up.needs[5], "dprecision", r[5]);
  Check(AttentionBackward(prepared.options, prepared.inputs, upstream, gradients));
  for (std::size_t n = 0; n < r.size(); ++n) {
    if (up.needs[n]) r[n] = r[n].to(tensors[n]->scalar_type());
  }
  return r;
}

// f(T()), T being the engine's type for the call: its own, or float for what the engine does not have.
template <typename F>
auto InTypeOf(const AttendCall& call, const F& f) {
  switch (call.q.scalar_type()) {
    case at::kDouble:
      return f(double());
    case at::kBFloat16:
      return f(BFloat16());
    case at::kHalf:
      return f(Float16());
    default:
      return f(float());
  }
}

}  // namespace

AttendOutputs EngineAttend(const AttendCall& call, const at::Tensor& out) {
  return InTypeOf(call, [&]<typename T>(T) { return Forward<T>(call, out); });
}

AttendGradients EngineAttendBackward(const AttendCall& call, const AttendUpstream& upstream,
                                     const AttendGradients& into) {
  return InTypeOf(call, [&]<typename T>(T) { return Backward<T>(call, upstream, into); });
}

}  // namespace regard::nn
