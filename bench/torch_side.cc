#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "bench/sides.h"
#include "nn/attend.h"

namespace regard::bench {
namespace {

// How torch measures distances: in differences, or as it sees fit (as products where there are many points).
enum class Distance { kDifferences = 2, kDefault = 0 };

// The formula for q [..., n, D], k [..., S, D], v [..., S, E], with a mask that broadcasts to [..., n, S] (or
// none).
at::Tensor Formula(ScoreKind score, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   const at::Tensor& parameter, const at::Tensor& keep, Distance distance) {
  at::Tensor s;
  switch (score) {
    case ScoreKind::kScaledDot:
      s = q.matmul(k.transpose(-1, -2)) * (1 / std::sqrt(static_cast<double>(q.size(-1))));
      break;
    case ScoreKind::kAdditive:
      s = (at::tanh(q.unsqueeze(-2) + k.unsqueeze(-3)) * parameter).sum(-1);
      break;
    case ScoreKind::kGaussian:
      s = at::cdist(q * parameter, k * parameter, 2, static_cast<std::int64_t>(distance)).square() * -0.5;
      break;
  }
  if (keep.defined()) s = s.masked_fill(~keep, -std::numeric_limits<double>::infinity());
  return at::softmax(s, -1).matmul(v);
}

// True where query first + r may see key j, [rows, S]; undefined without a mask.
at::Tensor CausalAndWindow(const Spec& spec, std::int64_t first, std::int64_t rows) {
  if (!spec.causal && !spec.window) return {};
  const at::Tensor distance =
      at::arange(spec.keys()).unsqueeze(0) - at::arange(first, first + rows).unsqueeze(1);
  at::Tensor keep = at::ones({rows, spec.keys()}, at::kBool);
  if (spec.causal) keep = keep & (distance <= 0);
  if (spec.window) keep = keep & (distance.abs() <= *spec.window);
  return keep;
}

// A function of tensors, and autograd for its gradients.
class Torch : public Side {
 public:
  using Function = std::function<at::Tensor(const Tensors&)>;

  Torch(const Spec& spec, const Tensors& tensors, Function function)
      : spec_(spec), t_(tensors), function_(std::move(function)) {
    if (!spec_.has_backward()) return;
    for (at::Tensor* t : {&t_.q, &t_.k, &t_.v, &t_.parameter}) {
      if (!t->defined()) continue;
      *t = t->detach().requires_grad_();
      leaves_.push_back(*t);
    }
    if (spec_.pass == Pass::kBackward) out_ = function_(t_);
  }

  void Call() override {
    if (spec_.has_forward()) {
      const torch::AutoGradMode mode(spec_.has_backward());
      out_ = at::Tensor();  // gives its graph back first
      out_ = function_(t_);
    }
    if (!spec_.has_backward()) return;
    gradients_.clear();
    gradients_ = torch::autograd::grad({out_}, leaves_, {t_.dout}, /*retain_graph=*/true);
  }

  Results Get() const override {
    Results results;
    if (spec_.has_forward()) results.push_back({"out", out_.detach()});
    constexpr const char* kNames[] = {"dq", "dk", "dv", "dparameter"};
    for (std::size_t n = 0; n < gradients_.size(); ++n) results.push_back({kNames[n], gradients_[n]});
    return results;
  }

 private:
  const Spec spec_;
  Tensors t_;
  Function function_;
  std::vector<at::Tensor> leaves_, gradients_;
  at::Tensor out_;
};

}  // namespace

std::unique_ptr<Side> OpSide(const Spec& spec, const Tensors& tensors) {
  nn::AttendOptions options;
  options.causal = spec.causal;
  options.window_left = options.window_right = spec.window;
  options.lengths = tensors.lengths;
  options.dropout = spec.dropout;
  if (spec.score == ScoreKind::kAdditive) options.score = nn::ScoreKind::kAdditive;
  if (spec.score == ScoreKind::kGaussian) options.score = nn::ScoreKind::kGaussian;
  return std::make_unique<Torch>(spec, tensors, [options](const Tensors& t) mutable {
    (options.score == nn::ScoreKind::kAdditive ? options.additive_weight : options.precision) = t.parameter;
    return nn::Attend(t.q, t.k, t.v, options).out;
  });
}

std::unique_ptr<Side> PyTorchSide(const Spec& spec, const Tensors& tensors) {
  if (spec.score != ScoreKind::kScaledDot) {
    return std::make_unique<Torch>(spec, tensors, [score = spec.score](const Tensors& t) {
      return Formula(score, t.q, t.k, t.v, t.parameter, {}, Distance::kDefault);
    });
  }
  std::optional<at::Tensor> keep;
  if (spec.window) keep = CausalAndWindow(spec, 0, spec.L);
  if (tensors.lengths.defined()) {
    keep = (at::arange(spec.keys()).unsqueeze(0) < tensors.lengths.unsqueeze(1)).view({spec.B, 1, 1, -1});
  }
  return std::make_unique<Torch>(spec, tensors, [spec, keep](const Tensors& t) {
    return at::scaled_dot_product_attention(t.q, t.k, t.v, keep, spec.dropout, spec.causal && !keep,
                                            std::nullopt, spec.key_heads() != spec.H);
  });
}

namespace {

// The formula and its gradients for queries first .. first + rows of head h of batch b, added to `all`.
void WriteOut(const Spec& spec, const Tensors& t, std::int64_t b, std::int64_t h, std::int64_t first,
              std::int64_t rows, Tensors& all) {
  at::Tensor keep = CausalAndWindow(spec, first, rows);
  if (t.lengths.defined()) {
    const at::Tensor there = at::arange(spec.keys()).unsqueeze(0) < t.lengths[b];
    keep = keep.defined() ? keep & there : there;
  }
  const std::int64_t g = h / (spec.H / spec.key_heads());
  std::vector<at::Tensor> leaves{t.q[b][h].narrow(0, first, rows), t.k[b][g], t.v[b][g]};
  if (t.parameter.defined()) leaves.push_back(t.parameter);
  for (at::Tensor& leaf : leaves) leaf = leaf.detach().requires_grad_(spec.has_backward());
  const at::Tensor out = Formula(spec.score, leaves[0], leaves[1], leaves[2],
                                 leaves.size() > 3 ? leaves[3] : at::Tensor(), keep, Distance::kDifferences);
  all.dout[b][h].narrow(0, first, rows).copy_(out.detach());
  if (!spec.has_backward()) return;
  const auto gradients = torch::autograd::grad({out}, leaves, {t.dout[b][h].narrow(0, first, rows)});
  all.q[b][h].narrow(0, first, rows).copy_(gradients[0]);
  all.k[b][g] += gradients[1];
  all.v[b][g] += gradients[2];
  if (t.parameter.defined()) all.parameter += gradients[3];
}

}  // namespace

Results WrittenOut(const Spec& spec, const Tensors& tensors, at::ScalarType type) {
  const Tensors t = tensors.To(type);
  Tensors all;  // `dout` holds the output, the others their own gradients
  all.dout = at::zeros({spec.B, spec.H, spec.L, spec.value_width()}, type);
  all.q = at::zeros_like(t.q), all.k = at::zeros_like(t.k), all.v = at::zeros_like(t.v);
  if (t.parameter.defined()) all.parameter = at::zeros_like(t.parameter);
  const std::int64_t a_row = spec.keys() * (spec.score == ScoreKind::kAdditive ? spec.D : 1);
  const std::int64_t rows = std::clamp<std::int64_t>((std::int64_t{1} << 24) / a_row, 1, spec.L);
  for (std::int64_t b = 0; b < spec.B; ++b) {
    for (std::int64_t h = 0; h < spec.H; ++h) {
      for (std::int64_t first = 0; first < spec.L; first += rows) {
        WriteOut(spec, t, b, h, first, std::min(rows, spec.L - first), all);
      }
    }
  }
  Results results;
  if (spec.has_forward()) results.push_back({"out", all.dout});
  if (!spec.has_backward()) return results;
  results.insert(results.end(), {{"dq", all.q}, {"dk", all.k}, {"dv", all.v}});
  if (all.parameter.defined()) results.push_back({"dparameter", all.parameter});
  return results;
}

}  // namespace regard::bench
