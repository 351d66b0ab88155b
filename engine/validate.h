// Are the arguments of a call consistent? The status names the first that is not, its shape and what was
// expected. After it every size, product of sizes and offset into a tensor fits 64 bits.
#ifndef REGARD_ENGINE_VALIDATE_H_
#define REGARD_ENGINE_VALIDATE_H_

#include "regard/attention.h"

namespace regard::engine {

template <typename T>
Status ValidateForward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                       const AttentionOutputs<T>& outputs);

template <typename T>
Status ValidateBackward(const AttentionOptions<SumType<T>>& options, const AttentionInputs<T>& inputs,
                        const AttentionUpstream<T>& upstream, const AttentionGradients<T>& gradients);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_VALIDATE_H_
