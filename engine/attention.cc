#include "regard/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>

#include "engine/base/memory.h"
#include "engine/base/target.h"
#include "engine/kernels/backward.h"
#include "engine/kernels/forward.h"
#include "engine/kernels/problem.h"
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
  const Problem<T>& p = plan.problem();
  if (p.score != ScoreKind::kCompact) {
    return ForwardByTiles(options, p, outputs) ? Status() : OutOfMemory();
  }
  const ForwardCall<T> call{plan.problem(), outputs};
  const bool done = RunChunks(options, Bundle(call.problem, call.tasks()),
                              [&](Index, Index first, Index last) { ForwardRange(call, first, last); });
  return done ? Status() : OutOfMemory();
}

// A key head's pairs are few enough to be one task.
template <typename T>
bool IsSmall(const Problem<T>& p) {
  return p.S <= kKeyTile && p.group * p.L * p.S * (p.D + p.E) <= Index{1} << 18;
}

template <typename T>
Status Backward(const AttentionOptions<T>& options, const AttentionInputs<T>& inputs,
                const AttentionUpstream<T>& upstream, const AttentionGradients<T>& grads) {
  const Plan<T> plan(options, inputs);
  BackwardCall<T> call{plan.problem(), upstream, grads};
  const Problem<T>& p = call.problem;
  Packed<T> out, dout;
  if (upstream.dout) call.upstream.dout = dout.Pack(*upstream.dout);
  if (upstream.dout && p.soft()) call.upstream.out = out.Pack(upstream.out);

  if (p.score != ScoreKind::kCompact) {
    return BackwardByTiles(options, p, call.upstream, grads) ? Status() : OutOfMemory();
  }

  bool done = true;
  const auto run = [&](BackwardPass pass, const Chunks& chunks) {
    done = done && RunChunks(options, chunks, [&](Index chunk, Index first, Index last) {
             BackwardRange(call, pass, chunk, first, last);
           });
  };
  const auto run_pass = [&](BackwardPass pass) { run(pass, Bundle(p, call.tasks(pass))); };

  Buffer<T> row_term, parameter_sums;
  if (p.soft() && !call.row_in_tile()) {
    row_term = Buffer<T>(static_cast<std::size_t>(p.B * p.H * p.L));
    call.row_term = row_term.data();
    run_pass(BackwardPass::kRowTerm);
  }
  const bool parameter = grads.dw || grads.dprecision;
  const bool query = grads.dq || parameter, key = grads.dk || grads.dv;
  const bool both = query && key && IsSmall(p);
  const BackwardPass query_pass = both ? BackwardPass::kBoth : BackwardPass::kQuery;
  const Chunks query_chunks = Bundle(p, call.tasks(query_pass));
  if (parameter) {
    call.parameter_heads = grads.dw ? grads.dw->shape[0] : 1;
    const auto size = static_cast<std::size_t>(query_chunks.count() * call.parameter_heads * p.D);
    parameter_sums = Buffer<T>(size);
    std::fill_n(parameter_sums.data(), size, T(0));
    call.parameter_sums = parameter_sums.data();
  }
  if (query) run(query_pass, query_chunks);
  if (key && !both) run_pass(BackwardPass::kKey);
  if (grads.dbias) run_pass(BackwardPass::kBias);
  if (!done) return OutOfMemory();
  if (parameter) WriteParameter(call.parameter_sums, query_chunks.count(), call.parameter_heads, p.D, grads);
  return Status();
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
