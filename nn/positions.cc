#include "nn/positions.h"

#include <cmath>

#include "engine/base/error.h"

namespace regard::nn {

torch::Tensor Sinusoid(std::int64_t length, std::int64_t width, std::int64_t offset) {
  const auto places = torch::arange(offset, offset + length, torch::kFloat64).unsqueeze(1);
  const auto even = torch::arange(0, width, 2, torch::kFloat64);
  const auto angles = places * torch::exp(even * (-std::log(10000.0) / static_cast<double>(width)));
  torch::Tensor table = torch::empty({length, width});
  table.slice(1, 0, width, 2).copy_(angles.sin());
  table.slice(1, 1, width, 2).copy_(angles.cos().narrow(1, 0, width / 2));
  return table;
}

PositionsImpl::PositionsImpl(PositionKind kind, std::int64_t max_length, std::int64_t width) {
  if (max_length < 1 || width < 1) {
    throw Error(c10::str("positions: ", max_length, " of width ", width, "; expected 1 or more"));
  }
  if (kind == PositionKind::kLearned) {
    weight = register_parameter("weight", torch::empty({max_length, width}).normal_(0, 0.02));
  } else {
    table_ = Sinusoid(max_length, width);
  }
}

torch::Tensor PositionsImpl::forward(const torch::Tensor& x, std::int64_t offset) {
  const torch::Tensor& table = weight.defined() ? weight : table_;
  if (offset + x.size(1) > table.size(0)) {
    throw Error(c10::str(x.size(1), " positions from ", offset, " on; expected at most ", table.size(0)));
  }
  return x + table.narrow(0, offset, x.size(1)).to(x.device(), x.scalar_type());
}

}  // namespace regard::nn
