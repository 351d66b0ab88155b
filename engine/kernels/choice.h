// Argmax and Sample: out_i = drop_ij v_j of the key j that query i chooses.
#ifndef REGARD_ENGINE_KERNELS_CHOICE_H_
#define REGARD_ENGINE_KERNELS_CHOICE_H_

#include "engine/kernels/pack.h"
#include "engine/kernels/problem.h"
#include "engine/kernels/tiles.h"
#include "regard/attention.h"

namespace regard::engine {

template <typename T>
struct ChoiceCall {
  const Problem<T>& problem;
  const AttentionOutputs<T>& outputs;
  Panels<T> keys;
  RowBlocks blocks;  // a task is one of them
};

// Tasks first .. last - 1, on this thread.
template <typename T>
void ChoiceRange(const ChoiceCall<T>& call, Index first, Index last);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_CHOICE_H_
