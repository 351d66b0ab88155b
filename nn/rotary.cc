#include "nn/rotary.h"

#include <cmath>

#include "engine/base/error.h"

namespace regard::nn {

using torch::Tensor;

RotaryImpl::RotaryImpl(std::int64_t width, double base, RotaryPairs pairs)
    : width_(width), base_(base), pairs_(pairs) {
  if (width < 2 || width % 2 != 0) {
    throw Error(c10::str("rotary positions of width ", width, ": expected an even number of 2 or more"));
  }
  if (!(base > 0) || !std::isfinite(base)) throw Error(c10::str("rotary base ", base, ": expected above 0"));
}

Tensor RotaryImpl::forward(const Tensor& x, std::int64_t offset) {
  if (x.dim() < 2 || x.size(-1) != width_) {
    throw Error(c10::str("x has shape ", x.sizes(), "; expected [..., length, ", width_, "]"));
  }
  const auto exact = torch::TensorOptions().dtype(torch::kDouble).device(x.device());
  const Tensor speeds = torch::pow(base_, torch::arange(0, width_, 2, exact) / -static_cast<double>(width_));
  const Tensor angles =
      torch::outer(torch::arange(offset, offset + x.size(-2), exact), speeds);  // [L, width / 2]
  const Tensor cosine = angles.cos().to(x.scalar_type()), sine = angles.sin().to(x.scalar_type());
  const bool halves = pairs_ == RotaryPairs::kHalves;
  const auto part = [&](std::int64_t n) {
    return halves ? x.slice(-1, n * width_ / 2, (n + 1) * width_ / 2) : x.slice(-1, n, width_, 2);
  };
  const Tensor a = part(0), b = part(1);
  const Tensor turned_a = a * cosine - b * sine, turned_b = a * sine + b * cosine;
  return halves ? torch::cat({turned_a, turned_b}, -1) : torch::stack({turned_a, turned_b}, -1).flatten(-2);
}

void RotaryImpl::pretty_print(std::ostream& stream) const {
  stream << "regard::nn::Rotary(width=" << width_ << ", base=" << base_
         << ", pairs=" << (pairs_ == RotaryPairs::kHalves ? "halves" : "neighbours") << ")";
}

}  // namespace regard::nn
