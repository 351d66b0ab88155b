// Tensors of 16-bit numbers as the float32 path wants them.
#ifndef REGARD_ENGINE_STORAGE_H_
#define REGARD_ENGINE_STORAGE_H_

#include <optional>
#include <utility>
#include <vector>

#include "engine/base/memory.h"
#include "regard/attention.h"

namespace regard::engine {

// Float32 copies of the tensors of one call, T being BFloat16 or Float16, and the way back. Everything is
// converted here, on the call's threads.
template <typename T>
class Float32Copies {
 public:
  // The options must outlive the copies.
  explicit Float32Copies(const AttentionOptions<float>& options) : options_(options) {}

  // A copy of t. Where t repeats itself by a stride of 0, so does the copy.
  TensorView<const float, 4> Read(TensorView<const T, 4> t);

  // Memory for what will be t: t's own numbers where it is to be added to, else not initialised.
  TensorView<float, 4> Write(const TensorView<T, 4>& t, bool add = false);

  // Rounds what stands in that memory into its tensors.
  void Store();

  std::optional<TensorView<const float, 4>> Read(const std::optional<TensorView<const T, 4>>& t) {
    if (!t) return std::nullopt;
    return Read(*t);
  }
  std::optional<TensorView<float, 4>> Write(const std::optional<TensorView<T, 4>>& t, bool add = false) {
    if (!t) return std::nullopt;
    return Write(*t, add);
  }

 private:
  const AttentionOptions<float>& options_;
  std::vector<Buffer<float>> copies_;
  std::vector<std::pair<TensorView<T, 4>, const float*>> written_;
};

extern template class Float32Copies<BFloat16>;
extern template class Float32Copies<Float16>;

}  // namespace regard::engine

#endif  // REGARD_ENGINE_STORAGE_H_
