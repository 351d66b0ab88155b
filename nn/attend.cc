#include "nn/attend.h"

#include <string>

#include "engine/base/error.h"
#include "nn/attend_op.h"

namespace regard::nn {
namespace {

// Puts the head dimension (and, for rank 2, the batch) that a tensor leaves out in its place.
torch::Tensor WithHeads(const torch::Tensor& t, std::int64_t rank) {
  if (!t.defined() || t.dim() != rank || rank == 4) return t;
  return rank == 3 ? t.unsqueeze(1) : t.unsqueeze(0).unsqueeze(0);
}

torch::Tensor WithoutHeads(const torch::Tensor& t, std::int64_t rank) {
  if (rank == 4) return t;
  return rank == 3 ? t.squeeze(1) : t.squeeze(1).squeeze(0);
}

}  // namespace

AttendResult Attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                    const AttendOptions& options) {
  const std::int64_t rank = q.dim();
  if (rank < 2 || rank > 4 || k.dim() != rank || v.dim() != rank) {
    throw Error("q, k and v have " + std::to_string(rank) + ", " + std::to_string(k.dim()) + " and " +
                std::to_string(v.dim()) + " dimensions; expected the same number, 2, 3 or 4");
  }
  AttendCall call{WithHeads(q, rank), WithHeads(k, rank), WithHeads(v, rank), options, options.seed};
  AttendOptions& o = call.options;
  for (torch::Tensor* t : {&o.bias, &o.keep, &o.blocks}) *t = WithHeads(*t, rank);
  try {
    const AttendOutputs outputs = DispatchAttend(call);
    const auto given = [&](bool wanted, AttendOutput which) {
      return wanted ? WithoutHeads(outputs[which], rank) : torch::Tensor();
    };
    return {given(true, kOut), given(o.return_lse, kLse), given(o.return_weights, kWeights),
            given(IsHard(call), kIndex), given(IsHard(call), kLogProb)};
  } catch (const c10::Error& error) {
    throw Error(error.what_without_backtrace());
  }
}

}  // namespace regard::nn
