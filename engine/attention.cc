#include "regard/attention.h"

#include <cstddef>
#include <vector>

#include "engine/kernels/reference.h"
#include "engine/validate.h"

namespace regard {
namespace {

template <typename T, typename From, std::size_t kRank>
void Write(const std::vector<From>& from, bool accumulate, const TensorView<T, kRank>& to) {
  std::array<std::int64_t, kRank> at{};
  for (const From& value : from) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < kRank; ++d) offset += at[d] * to.strides[d];
    to.data[offset] = static_cast<T>(accumulate ? static_cast<From>(to.data[offset]) + value : value);
    for (std::size_t d = kRank; d-- > 0 && ++at[d] == to.shape[d];) at[d] = 0;
  }
}

}  // namespace

template <typename T>
Status AttentionForward(const AttentionOptions<T>& options, const AttentionInputs<T>& inputs,
                        const AttentionOutputs<T>& outputs) {
  if (Status status = engine::ValidateForward(options, inputs, outputs); !status.ok()) return status;
  const auto result = engine::ReferenceForward<double>(options, inputs);
  Write(result.out, false, outputs.out);
  if (outputs.lse) Write(result.lse, false, *outputs.lse);
  if (outputs.weights) Write(result.weights, false, *outputs.weights);
  if (outputs.index) Write(result.index, false, *outputs.index);
  if (outputs.log_prob) Write(result.log_prob, false, *outputs.log_prob);
  return Status();
}

template <typename T>
Status AttentionBackward(const AttentionOptions<T>& options, const AttentionInputs<T>& inputs,
                         const AttentionUpstream<T>& upstream, const AttentionGradients<T>& gradients) {
  if (Status status = engine::ValidateBackward(options, inputs, upstream, gradients); !status.ok())
    return status;
  const auto result = engine::ReferenceBackward<double>(options, inputs, upstream);
  const bool add = gradients.accumulate;
  if (gradients.dq) Write(result.dq, add, *gradients.dq);
  if (gradients.dk) Write(result.dk, add, *gradients.dk);
  if (gradients.dv) Write(result.dv, add, *gradients.dv);
  if (gradients.dbias) Write(result.dbias, add, *gradients.dbias);
  if (gradients.dw) Write(result.dw, add, *gradients.dw);
  if (gradients.dprecision) Write(result.dprecision, add, *gradients.dprecision);
  return Status();
}

template Status AttentionForward(const AttentionOptions<float>&, const AttentionInputs<float>&,
                                 const AttentionOutputs<float>&);
template Status AttentionForward(const AttentionOptions<double>&, const AttentionInputs<double>&,
                                 const AttentionOutputs<double>&);
template Status AttentionBackward(const AttentionOptions<float>&, const AttentionInputs<float>&,
                                  const AttentionUpstream<float>&, const AttentionGradients<float>&);
template Status AttentionBackward(const AttentionOptions<double>&, const AttentionInputs<double>&,
                                  const AttentionUpstream<double>&, const AttentionGradients<double>&);

const char* InstructionSet() { return "portable"; }

}  // namespace regard
