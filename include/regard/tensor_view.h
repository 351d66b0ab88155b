// A tensor that somebody else owns.
#ifndef REGARD_TENSOR_VIEW_H_
#define REGARD_TENSOR_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace regard {

// `kRank` sizes and strides over memory that the caller keeps alive. Strides are counted in elements and may
// be anything, also 0 (an expanded dimension) or negative. A tensor with a size of 0 may have a null pointer.
template <typename T, std::size_t kRank>
struct TensorView {
  using Sizes = std::array<std::int64_t, kRank>;

  T* data = nullptr;
  Sizes shape{};
  Sizes strides{};

  TensorView() = default;
  TensorView(T* data_, const Sizes& shape_, const Sizes& strides_)
      : data(data_), shape(shape_), strides(strides_) {}

  // A contiguous tensor, last dimension fastest.
  TensorView(T* data_, const Sizes& shape_) : data(data_), shape(shape_) {
    std::int64_t stride = 1;
    for (std::size_t d = kRank; d-- > 0;) {
      strides[d] = stride;
      stride *= shape[d];
    }
  }

  // A view of mutable data is a view of constant data.
  operator TensorView<const T, kRank>() const requires(!std::is_const_v<T>) { return {data, shape, strides}; }

  std::int64_t size() const {
    std::int64_t n = 1;
    for (std::int64_t s : shape) n *= s;
    return n;
  }

  template <typename... Index>
  requires(sizeof...(Index) == kRank) T& operator()(Index... index) const {
    const Sizes at{static_cast<std::int64_t>(index)...};
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < kRank; ++d) offset += at[d] * strides[d];
    return data[offset];
  }
};

}  // namespace regard

#endif  // REGARD_TENSOR_VIEW_H_
