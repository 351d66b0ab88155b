#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "bench/sides.h"
#include "engine/base/error.h"
#include "regard/attention.h"

namespace regard::bench {
namespace {

template <typename T, std::size_t kRank>
TensorView<T, kRank> View(const at::Tensor& t) {
  TensorView<T, kRank> view;
  view.data = static_cast<T*>(t.data_ptr());
  for (std::size_t d = 0; d < kRank; ++d) {
    view.shape[d] = t.size(static_cast<std::int64_t>(d));
    view.strides[d] = t.stride(static_cast<std::int64_t>(d));
  }
  return view;
}

void Check(const Status& status) {
  if (!status.ok()) throw Error(status.message());
}

// T is what the tensors are stored in.
template <typename T>
class Engine : public Side {
  using Sum = SumType<T>;

 public:
  Engine(const Spec& spec, const Tensors& t, int threads) : spec_(spec), t_(t) {
    if (t_.parameter.defined()) t_.parameter = t_.parameter.to(kSumType);
    SetOptions(threads);
    inputs_ = {View<const T, 4>(t_.q), View<const T, 4>(t_.k), View<const T, 4>(t_.v)};
    out_ = at::zeros({spec.B, spec.H, spec.L, spec.value_width()}, t_.q.options());
    outputs_.out = View<T, 4>(out_);
    if (!spec_.has_backward()) return;
    lse_ = at::zeros({spec.B, spec.H, spec.L}, kSumType);
    outputs_.lse = View<Sum, 3>(lse_);
    SetGradients();
    if (spec_.pass == Pass::kBackward) Forward();
  }

  void Call() override {
    if (spec_.has_forward()) Forward();
    if (spec_.has_backward()) Check(AttentionBackward(options_, inputs_, upstream_, gradients_));
  }

  Results Get() const override {
    Results results;
    if (spec_.has_forward()) results.push_back({"out", out_});
    if (!spec_.has_backward()) return results;
    results.insert(results.end(), {{"dq", dq_}, {"dk", dk_}, {"dv", dv_}});
    if (dparameter_.defined()) results.push_back({"dparameter", dparameter_});
    return results;
  }

 private:
  static constexpr at::ScalarType kSumType = std::is_same_v<Sum, double> ? at::kDouble : at::kFloat;

  void SetOptions(int threads) {
    options_.threads = threads;
    if (spec_.score == ScoreKind::kAdditive) {
      options_.score = Additive<Sum>{View<const Sum, 2>(t_.parameter.unsqueeze(0))};
    } else if (spec_.score == ScoreKind::kGaussian) {
      options_.score = Gaussian<Sum>{View<const Sum, 1>(t_.parameter)};
    }
    if (spec_.causal) options_.mask.causal = Causal{};
    if (spec_.window) options_.mask.window = Window{spec_.window, spec_.window};
    if (t_.lengths.defined()) {
      options_.mask.lengths = Lengths{View<const std::int64_t, 2>(t_.lengths.unsqueeze(1))};
    }
    options_.dropout = {spec_.dropout, /*seed=*/1};
  }

  void SetGradients() {
    upstream_.out = View<const T, 4>(out_);
    upstream_.lse = View<const Sum, 3>(lse_);
    upstream_.dout = View<const T, 4>(t_.dout);
    dq_ = at::zeros_like(t_.q), dk_ = at::zeros_like(t_.k), dv_ = at::zeros_like(t_.v);
    gradients_.dq = View<T, 4>(dq_), gradients_.dk = View<T, 4>(dk_), gradients_.dv = View<T, 4>(dv_);
    if (!t_.parameter.defined()) return;
    dparameter_ = at::zeros_like(t_.parameter);
    if (spec_.score == ScoreKind::kAdditive) {
      gradients_.dw = View<Sum, 2>(dparameter_.unsqueeze(0));
    } else {
      gradients_.dprecision = View<Sum, 1>(dparameter_);
    }
  }

  void Forward() { Check(AttentionForward(options_, inputs_, outputs_)); }

  const Spec spec_;
  Tensors t_;
  at::Tensor out_, lse_, dq_, dk_, dv_, dparameter_;
  AttentionOptions<Sum> options_;
  AttentionInputs<T> inputs_;
  AttentionOutputs<T> outputs_;
  AttentionUpstream<T> upstream_;
  AttentionGradients<T> gradients_;
};

}  // namespace

std::unique_ptr<Side> EngineSide(const Spec& spec, const Tensors& tensors, int threads) {
  switch (tensors.q.scalar_type()) {
    case at::kDouble:
      return std::make_unique<Engine<double>>(spec, tensors, threads);
    case at::kBFloat16:
      return std::make_unique<Engine<BFloat16>>(spec, tensors, threads);
    default:
      return std::make_unique<Engine<float>>(spec, tensors, threads);
  }
}

}  // namespace regard::bench
