// Attention written down as its formulas, line by line, with everything held in memory: what the kernels are
// tested against. It shares no code with them but the random generator.
//
// C is the type that is calculated in: double for the right values; T itself, or float where T has 16 bits,
// for "the same formula in the same type", which says how large an error is fair.
#ifndef REGARD_ENGINE_KERNELS_REFERENCE_H_
#define REGARD_ENGINE_KERNELS_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "regard/attention.h"

namespace regard::engine {

// Contiguous results, shaped as in AttentionOutputs.
template <typename C>
struct ReferenceOutputs {
  std::vector<C> out, lse, weights, log_prob;
  std::vector<std::int64_t> index;
};

// Contiguous results, shaped as in AttentionGradients.
template <typename C>
struct ReferenceGradients {
  std::vector<C> dq, dk, dv, dbias, dw, dprecision;
};

template <typename C, typename T>
ReferenceOutputs<C> ReferenceForward(const AttentionOptions<SumType<T>>& options,
                                     const AttentionInputs<T>& inputs);

// Of upstream only the gradients are read: the forward pass is computed again in C.
template <typename C, typename T>
ReferenceGradients<C> ReferenceBackward(const AttentionOptions<SumType<T>>& options,
                                        const AttentionInputs<T>& inputs,
                                        const AttentionUpstream<T>& upstream);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_REFERENCE_H_
