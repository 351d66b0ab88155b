#include "regard/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>

#include "engine/base/target.h"
#include "engine/kernels/pack.h"
#include "engine/plan.h"
#include "engine/storage.h"
#include "engine/tiled.h"
#include "engine/validate.h"

namespace regard {
namespace engine {
namespace {

Status OutOfMemory() {
  return Status::InvalidArgument("not enough memory for the attention's working arrays");
}

template <typename T>
Status Forward(const AttentionOptions<T>& options, const AttentionInputs<T>& inputs,
               const AttentionOutputs<T>& outputs) {
  const Plan<T> plan(options, inputs);
  return ForwardByTiles(options, plan.problem(), outputs) ? Status() : OutOfMemory();
}

template <typename T>
Status Backward(const AttentionOptions<T>& options, const AttentionInputs<T>& inputs,
                const AttentionUpstream<T>& upstream, const AttentionGradients<T>& grads) {
  const Plan<T> plan(options, inputs);
  const Problem<T>& p = plan.problem();
  Packed<T> out, dout;
  AttentionUpstream<T> packed = upstream;
  if (upstream.dout) packed.dout = dout.Pack(*upstream.dout);
  if (upstream.dout && p.soft()) packed.out = out.Pack(upstream.out);
  return BackwardByTiles(options, p, packed, grads) ? Status() : OutOfMemory();
}

// 16-bit storage: the float32 path, on float32 copies of what it reads and writes.
template <typename T>
Status ForwardOf16Bits(const AttentionOptions<float>& options, const AttentionInputs<T>& inputs,
                       const AttentionOutputs<T>& outputs) {
  Float32Copies<T> copies(options);
  const AttentionInputs<float> in{copies.Read(inputs.q), copies.Read(inputs.k), copies.Read(inputs.v)};
  const AttentionOutputs<float> out{copies.Write(outputs.out), outputs.lse, copies.Write(outputs.weights),
                                    outputs.index, outputs.log_prob};
  Status status = Forward(options, in, out);
  if (status.ok()) copies.Store();
  return status;
}

template <typename T>
Status BackwardOf16Bits(const AttentionOptions<float>& options, const AttentionInputs<T>& inputs,
                        const AttentionUpstream<T>& upstream, const AttentionGradients<T>& grads) {
  Float32Copies<T> copies(options);
  const AttentionInputs<float> in{copies.Read(inputs.q), copies.Read(inputs.k), copies.Read(inputs.v)};
  AttentionUpstream<float> up{{},
                              upstream.lse,
                              upstream.index,
                              copies.Read(upstream.dout),
                              upstream.dlse,
                              copies.Read(upstream.dweights),
                              upstream.dlog_prob};
  if (upstream.dout && std::holds_alternative<Softmax>(options.normalizer))
    up.out = copies.Read(upstream.out);
  const bool add = grads.accumulate;
  const AttentionGradients<float> out{copies.Write(grads.dq, add),
                                      copies.Write(grads.dk, add),
                                      copies.Write(grads.dv, add),
                                      grads.dbias,
                                      grads.dw,
                                      grads.dprecision,
                                      grads.dchange,
                                      add};
  Status status = Backward(options, in, up, out);
  if (status.ok()) copies.Store();
  return status;
}

}  // namespace
}  // namespace engine

template <typename T>
Status AttentionForward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                        const AttentionOutputs<T>& outputs) {
  if (Status status = engine::ChooseTarget(); !status.ok()) return status;
  if (Status status = engine::ValidateForward(options, inputs, outputs); !status.ok()) return status;
  try {
    if constexpr (sizeof(T) == 2) {
      return engine::ForwardOf16Bits(options, inputs, outputs);
    } else {
      return engine::Forward(options, inputs, outputs);
    }
  } catch (const std::bad_alloc&) {
    return engine::OutOfMemory();
  }
}

template <typename T>
Status AttentionBackward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                         const AttentionUpstream<T>& upstream, const AttentionGradients<T>& gradients) {
  if (Status status = engine::ChooseTarget(); !status.ok()) return status;
  if (Status status = engine::ValidateBackward(options, inputs, upstream, gradients); !status.ok()) {
    return status;
  }
  try {
    if constexpr (sizeof(T) == 2) {
      return engine::BackwardOf16Bits(options, inputs, upstream, gradients);
    } else {
      return engine::Backward(options, inputs, upstream, gradients);
    }
  } catch (const std::bad_alloc&) {
    return engine::OutOfMemory();
  }
}

template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<float>&,
                                 const AttentionOutputs<float>&);
template Status AttentionForward(const AttentionOptions<double>&, const AttentionInputs<double>&,
                                 const AttentionOutputs<double>&);
template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<BFloat16>&,
                                 const AttentionOutputs<BFloat16>&);
template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<Float16>&,
                                 const AttentionOutputs<Float16>&);
template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<float>&,
                                  const AttentionUpstream<float>&, const AttentionGradients<float>&);
template Status AttentionBackward(const AttentionOptions<double>&, const AttentionInputs<double>&,
                                  const AttentionUpstream<double>&, const AttentionGradients<double>&);
template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<BFloat16>&,
                                  const AttentionUpstream<BFloat16>&, const AttentionGradients<BFloat16>&);
template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<Float16>&,
                                  const AttentionUpstream<Float16>&, const AttentionGradients<Float16>&);

const char* InstructionSet() { return engine::ChooseTarget().ok() ? engine::KernelTarget() : "none"; }

}  // namespace regard
