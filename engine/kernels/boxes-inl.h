// Boxes around queries and keys, which tell from few numbers that all pairs of some are far apart.
#if defined(REGARD_ENGINE_KERNELS_BOXES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_BOXES_INL_H_
#undef REGARD_ENGINE_KERNELS_BOXES_INL_H_
#else
#define REGARD_ENGINE_KERNELS_BOXES_INL_H_
#endif

#include <algorithm>

#include "engine/base/memory.h"
#include "engine/kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

// Of a tile's keys, and of each group of a block's queries: the least and the largest number in each of D
// dimensions.
template <typename T>
class Boxes {
 public:
  Boxes(std::size_t groups, std::size_t D, Scratch* scratch)
      : D_(D), keys_(scratch->Take<T>((1 + groups) * 2 * D)), queries_(keys_ + 2 * D) {}

  // q [count, D], rows `stride` apart; count > 0.
  HWY_NOINLINE void SetQueries(std::size_t group, const T* q, std::size_t stride, std::size_t count) {
    T *least = queries_ + group * 2 * D_, *largest = least + D_;
    std::copy(q, q + D_, least);
    std::copy(q, q + D_, largest);
    for (std::size_t m = 1; m < count; ++m) {
      q += stride;
      for (std::size_t at = 0; at < D_; ++at) {
        least[at] = std::min(least[at], q[at]);
        largest[at] = std::max(largest[at], q[at]);
      }
    }
  }

  // What fills up the last panel is in the box as well, which is none the worse for being larger.
  HWY_NOINLINE void SetKeys(const T* panels, std::size_t count) {
    const Lanes<T> d;
    const std::size_t size = PanelsSize<T>(count, D_);
    for (std::size_t at = 0; at < D_; ++at) {
      auto least = hn::Load(d, panels + at * kPanel<T>), largest = least;
      for (std::size_t n = 0; n < size; n += kPanel<T> * D_) {
        for (std::size_t x = 0; x < kPanel<T>; x += LanesOf<T>()) {
          const auto k = hn::Load(d, panels + n + at * kPanel<T> + x);
          least = hn::Min(least, k);
          largest = hn::Max(largest, k);
        }
      }
      keys_[at] = hn::GetLane(hn::MinOfLanes(d, least));
      keys_[D_ + at] = hn::GetLane(hn::MaxOfLanes(d, largest));
    }
  }

  // At most sum_d (a_d (q_d - k_d))² of all pairs, but for a rounding of less than a hundredth.
  T LeastSquare(std::size_t group, const T* a) const {
    const T *least = queries_ + group * 2 * D_, *largest = least + D_;
    T sum = 0;
    for (std::size_t at = 0; at < D_; ++at) {
      const T gap = std::max({T(0), keys_[at] - largest[at], least[at] - keys_[D_ + at]});
      sum += a[at] * gap * (a[at] * gap);
    }
    return sum;
  }

 private:
  std::size_t D_;
  T *keys_, *queries_;  // [2, D], and that for each group
};

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_BOXES_INL_H_
