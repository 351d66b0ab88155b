// Tensors that tests own, in memory laid out in any way.
#ifndef REGARD_ENGINE_TESTING_TENSOR_H_
#define REGARD_ENGINE_TESTING_TENSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/policies/random.h"
#include "regard/tensor_view.h"

namespace regard::engine {

enum class Layout {
  kContiguous,
  kTransposed,  // the last two dimensions are swapped in memory
  kSliced,      // each row is a slice, with every second element, of a longer one
  kReversed,    // negative strides
};

inline constexpr std::array kLayouts = {Layout::kContiguous, Layout::kTransposed, Layout::kSliced,
                                        Layout::kReversed};

template <typename T, std::size_t kRank>
class Tensor {
 public:
  using Sizes = std::array<std::int64_t, kRank>;

  Tensor() = default;
  explicit Tensor(const Sizes& shape, T value = T(), Layout layout = Layout::kContiguous)
      : view_(nullptr, shape) {
    if (layout == Layout::kTransposed && kRank >= 2) {
      Sizes swapped = shape;
      std::swap(swapped[kRank - 1], swapped[kRank >= 2 ? kRank - 2 : 0]);
      view_.strides = TensorView<T, kRank>(nullptr, swapped).strides;
      std::swap(view_.strides[kRank - 1], view_.strides[kRank >= 2 ? kRank - 2 : 0]);
    }
    if (layout == Layout::kSliced) {
      Sizes longer = shape;
      longer[kRank - 1] = 2 * shape[kRank - 1] + 3;
      view_.strides = TensorView<T, kRank>(nullptr, longer).strides;
      view_.strides[kRank - 1] = 2;
    }
    std::int64_t reach = 0;
    for (std::size_t d = 0; d < kRank; ++d) reach += (shape[d] - 1) * view_.strides[d];
    if (view_.size() == 0) return;
    memory_.reset(new T[static_cast<std::size_t>(reach + 1)]);
    std::fill_n(memory_.get(), reach + 1, value);
    view_.data = memory_.get();
    if (layout == Layout::kReversed) {
      view_.data += reach;
      for (std::int64_t& stride : view_.strides) stride = -stride;
    }
  }

  const TensorView<T, kRank>& view() const { return view_; }
  const Sizes& shape() const { return view_.shape; }
  std::int64_t size() const { return view_.size(); }
  bool empty() const { return view_.size() == 0; }

  template <typename... Index>
  T& operator()(Index... index) const {
    return view_(index...);
  }

  // The n-th element, last dimension fastest.
  T& Element(std::int64_t n) const {
    T* at = view_.data;
    for (std::size_t d = kRank; d-- > 0; n /= view_.shape[d]) at += n % view_.shape[d] * view_.strides[d];
    return *at;
  }

  std::vector<T> Values() const {
    std::vector<T> values;
    for (std::int64_t n = 0; n < size(); ++n) values.push_back(Element(n));
    return values;
  }

  Tensor Copy(Layout layout = Layout::kContiguous) const {
    Tensor copy(shape(), T(), layout);
    for (std::int64_t n = 0; n < size(); ++n) copy.Element(n) = Element(n);
    return copy;
  }

 private:
  TensorView<T, kRank> view_;
  std::shared_ptr<T[]> memory_;
};

// Numbers that depend on the seed alone.
class TestRandom {
 public:
  explicit TestRandom(std::uint64_t seed) : state_(Mix(seed + 1)) {}

  std::uint64_t Bits() { return Mix(state_ += 0x9E3779B97F4A7C15u); }
  std::int64_t Below(std::int64_t n) {
    return static_cast<std::int64_t>(Bits() % static_cast<std::uint64_t>(n));
  }
  bool Chance(double probability) { return static_cast<double>(Bits() >> 11) * 0x1p-53 < probability; }
  // In (-1, 1), and a float, so that tests of both types get the same number.
  float Value() { return static_cast<float>(static_cast<std::int64_t>(Bits() >> 40) - (1 << 23)) * 0x1p-23f; }

  template <typename T, std::size_t kRank>
  Tensor<T, kRank> Values(const std::array<std::int64_t, kRank>& shape, double scale = 1, double centre = 0) {
    Tensor<T, kRank> t(shape);
    for (std::int64_t n = 0; n < t.size(); ++n) {
      t.Element(n) = static_cast<T>(static_cast<float>(centre + scale * static_cast<double>(Value())));
    }
    return t;
  }

 private:
  std::uint64_t state_;
};

}  // namespace regard::engine

#endif  // REGARD_ENGINE_TESTING_TENSOR_H_
