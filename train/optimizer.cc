#include "train/optimizer.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "engine/base/error.h"

namespace regard::train {
namespace {

// Independent partial sums let the compiler use vector registers without reordering a sum.
double SumOfSquares(const float* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 16;
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      sums[lane] += value * value;
    }
  }
  double sum = 0;
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  for (double lane : sums) sum += lane;
  return sum;
}

}  // namespace

double GlobalNorm(const std::vector<torch::Tensor>& tensors) {
  // Parts of one size, whatever the threads, so that the sum has the same bits on any number of them.
  constexpr std::int64_t kPart = 65536;
  std::vector<std::span<const float>> parts;
  std::vector<torch::Tensor> others;
  for (const torch::Tensor& tensor : tensors) {
    if (tensor.is_cpu() && tensor.scalar_type() == torch::kFloat && tensor.is_non_overlapping_and_dense()) {
      for (std::int64_t at = 0; at < tensor.numel(); at += kPart) {
        parts.emplace_back(tensor.const_data_ptr<float>() + at, std::min(kPart, tensor.numel() - at));
      }
    } else {
      others.push_back(tensor);
    }
  }
  std::vector<double> sums(parts.size());
  at::parallel_for(0, std::ssize(parts), 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      sums[n] = SumOfSquares(parts[n].data(), static_cast<std::int64_t>(parts[n].size()));
    }
  });
  double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  if (!others.empty()) {
    // Norms in the tensors' own type would overflow early for 16-bit ones.
    std::vector<torch::Tensor> norms = at::_foreach_norm(others, 2, torch::kDouble);
    sum += torch::stack(norms).square().sum().item<double>();
  }
  return std::sqrt(sum);
}

Adam::Adam(const torch::nn::Module& module, const AdamOptions& options) : options_(options) {
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    names_.push_back(item.key());
    parameters_.push_back(item.value());
    means_.push_back(torch::zeros_like(item.value()));
    squares_.push_back(torch::zeros_like(item.value()));
    steps_.push_back(torch::zeros({}, item.value().options().dtype(torch::kFloat).requires_grad(false)));
  }
  const torch::Device device = parameters_.empty() ? torch::kCPU : parameters_.front().device();
  scale_ = torch::ones({1}, torch::dtype(torch::kFloat).device(device));
}

StepReport Adam::Step(double rate, double divisor, double max_norm) {
  torch::NoGradGuard no_grad;
  // Those with weight decay, and those without.
  std::array<Group, 2> groups;
  std::vector<torch::Tensor> gradients;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& gradient = parameters_[i].grad();
    if (!gradient.defined()) continue;
    Group& group = groups[options_.decay_matrices_only && parameters_[i].dim() < 2 ? 1 : 0];
    group.parameters.push_back(parameters_[i]);
    group.gradients.push_back(gradient);
    group.means.push_back(means_[i]);
    group.squares.push_back(squares_[i]);
    group.steps.push_back(steps_[i]);
    gradients.push_back(gradient);
  }
  StepReport report;
  report.grad_norm = GlobalNorm(gradients) / divisor;
  if (!std::isfinite(report.grad_norm)) return report;
  report.applied = true;
  if (gradients.empty()) return report;

  const bool clipped = max_norm > 0 && report.grad_norm > max_norm;
  scale_.fill_(clipped ? divisor * (report.grad_norm / max_norm) : divisor);
  for (std::size_t n = 0; n < groups.size(); ++n) {
    if (!groups[n].parameters.empty()) Update(groups[n], rate, n == 0 ? options_.weight_decay : 0);
  }
  return report;
}

void Adam::Update(Group& group, double rate, double weight_decay) {
  for (torch::Tensor& step : group.steps) {
    if (step.is_cpu()) {
      *step.data_ptr<float>() += 1;  // an operator call each would cost more than the update of a small model
    } else {
      step.add_(1);
    }
  }
  const auto update = [&](auto op) {
    op(group.parameters, group.gradients, group.means, group.squares, {}, group.steps, rate, options_.beta1,
       options_.beta2, weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false, scale_,
       std::nullopt);
  };
  using Op = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                      at::TensorList, double, double, double, double, double, bool, bool,
                      const std::optional<at::Tensor>&, const std::optional<at::Tensor>&);
  update(options_.decoupled ? static_cast<Op>(&at::_fused_adamw_) : static_cast<Op>(&at::_fused_adam_));
}

void Adam::ZeroGrad() {
  for (torch::Tensor& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
}

NamedTensors Adam::State() const {
  NamedTensors state;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    state.emplace_back(names_[i] + ".mean", means_[i]);
    state.emplace_back(names_[i] + ".square", squares_[i]);
    state.emplace_back(names_[i] + ".steps", steps_[i]);
  }
  return state;
}

void Adam::Load(const NamedTensors& state) {
  torch::NoGradGuard no_grad;
  std::map<std::string, torch::Tensor> found(state.begin(), state.end());
  for (auto& [name, tensor] : State()) {
    const auto it = found.find(name);
    if (it == found.end()) throw Error(fmt::format("optimizer state has no \"{}\"", name));
    if (it->second.sizes() != tensor.sizes()) {
      throw Error(fmt::format("optimizer state \"{}\" has shape [{}], expected [{}]", name,
                              fmt::join(it->second.sizes(), ", "), fmt::join(tensor.sizes(), ", ")));
    }
    tensor.copy_(it->second);
  }
}

}  // namespace regard::train
