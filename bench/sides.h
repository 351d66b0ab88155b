// The two sides of a row: this project's call and another library's, on the same tensors.
#ifndef REGARD_BENCH_SIDES_H_
#define REGARD_BENCH_SIDES_H_

#include <functional>
#include <memory>

#include "bench/spec.h"

namespace regard::bench {

// One way to compute a Spec. Made ready by its constructor: where only the backward pass is wanted, the
// forward pass has run.
class Side {
 public:
  virtual ~Side() = default;
  virtual void Call() = 0;
  virtual Results Get() const = 0;  // of the last call
};

// The engine through its C++ interface, on the tensors' memory; its outputs are allocated once. `tensors` are
// float32, float64 or bfloat16.
std::unique_ptr<Side> EngineSide(const Spec& spec, const Tensors& tensors, int threads);

// The operator regard::attend, with autograd, on torch's threads.
std::unique_ptr<Side> OpSide(const Spec& spec, const Tensors& tensors);

// PyTorch: scaled_dot_product_attention with its causal flag, a boolean mask, dropout or grouped heads; for
// additive and Gaussian scores the formula in its operations (cdist for the Gaussian).
std::unique_ptr<Side> PyTorchSide(const Spec& spec, const Tensors& tensors);

// The formula, written out in PyTorch's operations and in `type`, a block of queries at a time. Without
// dropout.
Results WrittenOut(const Spec& spec, const Tensors& tensors, at::ScalarType type);

}  // namespace regard::bench

#endif  // REGARD_BENCH_SIDES_H_
