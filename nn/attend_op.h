// What the kernels of the operator regard::attend share.
#ifndef REGARD_NN_ATTEND_OP_H_
#define REGARD_NN_ATTEND_OP_H_

#include <torch/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nn/attend.h"

namespace regard::nn {

// One call of the operator: its arguments, tensors of rank 4.
struct AttendCall {
  at::Tensor q, k, v;
  AttendOptions options;
  c10::SymInt seed = 0;  // stands for options.seed: symbolic while a graph is traced

  // Every tensor, in the operator's order. The first kDifferentiable can have a gradient.
  static constexpr std::size_t kDifferentiable = 6, kTensors = 12;
  std::array<at::Tensor*, kTensors> Tensors();
};

enum AttendOutput : std::size_t { kOut, kLse, kWeights, kIndex, kLogProb, kAttendOutputs };
using AttendOutputs = std::array<at::Tensor, kAttendOutputs>;  // an empty tensor for what is not asked for

// What backward needs beside the call: the forward outputs, and the gradients (undefined: none) by them.
struct AttendUpstream {
  at::Tensor out, lse, index;
  at::Tensor dout, dlse, dweights, dlog_prob;
  std::array<bool, AttendCall::kDifferentiable> needs{};
};
using AttendGradients = std::array<at::Tensor, AttendCall::kDifferentiable>;

// Throws c10::ValueError where kinds or sizes do not fit together.
void CheckAttendCall(const AttendCall& call);

// The kernel of a score that is 0 outside of a ball.
std::optional<CompactKernel> CompactKernelOf(ScoreKind score);

// The factor of a dot-like score.
double ResolvedScale(const AttendCall& call);

// The type that scores are summed in, and that lse and log_prob have.
inline at::ScalarType SumType(const AttendCall& call) {
  return call.q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

inline bool IsHard(const AttendCall& call) { return call.options.normalizer != NormalizerKind::kSoftmax; }

// The CPU kernels: the engine on views of the tensors. 16-bit inputs are summed in float32. Where `out` or a
// gradient in `into` is defined, the result is written there: the right shape and type, any strides.
AttendOutputs EngineAttend(const AttendCall& call, const at::Tensor& out = {});
AttendGradients EngineAttendBackward(const AttendCall& call, const AttendUpstream& upstream,
                                     const AttendGradients& into = {});

// The same in ATen operations, on any device, differentiable by their own autograd.
AttendOutputs FallbackAttend(const AttendCall& call);

// regard::attend through the dispatcher.
AttendOutputs DispatchAttend(const AttendCall& call);

}  // namespace regard::nn

#endif  // REGARD_NN_ATTEND_OP_H_
