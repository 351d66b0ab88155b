// Register-tiled loops over a tile: the matrix product C = A B, and sums of any other term in its place.
//
// A block of kRows rows of A against kPanel columns of B is held in registers: 6 x 4 vectors where there are
// 32 registers, 6 x 2 where there are 16. Each step over k loads the vectors of B's row and broadcasts one
// number of each row of A from memory.
#if defined(REGARD_ENGINE_KERNELS_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_PRODUCT_INL_H_
#undef REGARD_ENGINE_KERNELS_PRODUCT_INL_H_
#else
#define REGARD_ENGINE_KERNELS_PRODUCT_INL_H_
#endif

#include <cstddef>

#include "engine/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

inline constexpr std::size_t kRows = 6;
#if HWY_TARGET == HWY_AVX3
inline constexpr std::size_t kPanelVectors = 4;
#else
inline constexpr std::size_t kPanelVectors = 2;
#endif

template <typename T>
HWY_INLINE constexpr std::size_t LanesOf() {
  return HWY_LANES(T) < kPad ? HWY_LANES(T) : kPad;
}
template <typename T>
inline constexpr std::size_t kPanel = kPanelVectors* LanesOf<T>();

// The sum of many vectors. Those of one number go to several sums in turn, so that it rounds as if they were
// longer.
template <typename T>
class VectorSum {
 public:
  HWY_INLINE VectorSum() {
    HWY_UNROLL(16) for (std::size_t n = 0; n < kSums; ++n) sums_[n] = hn::Zero(Lanes<T>());
  }
  // The sum of element `at` and those after it.
  HWY_INLINE Vector<T>& operator[](std::size_t at) { return sums_[kSums == 1 ? 0 : at % kSums]; }
  HWY_INLINE T Total() const {
    auto total = sums_[0];
    for (std::size_t n = 1; n < kSums; ++n) total = hn::Add(total, sums_[n]);
    return hn::GetLane(hn::SumOfLanes(Lanes<T>(), total));
  }

 private:
  static constexpr std::size_t kSums = LanesOf<T>() == 1 ? kPad : 1;
  Vector<T> sums_[kSums];
};

// One block: C [rows, vectors] = (C +) A [rows, K] B [K, vectors]. kAcross: A lies as [K, rows].
template <typename T>
struct BlockProduct {
  const T* a;
  std::size_t a_stride;  // from one row of A to the next, or with kAcross from one k to the next; a negative
                         // one is given modulo 2^64, b_stride too
  const T* b;
  std::size_t b_stride;
  std::size_t K;
  T* c;
  std::size_t c_stride;
  bool add;  // to what C holds
};

template <std::size_t kM, std::size_t kN, bool kAcross, typename T>
HWY_NOINLINE void MultiplyBlock(const BlockProduct<T>& block) {
  const Lanes<T> d;
  constexpr std::size_t kLanes = LanesOf<T>();
  Vector<T> sum[kM][kN];
  T* HWY_RESTRICT c = block.c;
  HWY_UNROLL(6) for (std::size_t m = 0; m < kM; ++m) {
    HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) {
      sum[m][n] = block.add ? hn::Load(d, c + m * block.c_stride + n * kLanes) : hn::Zero(d);
    }
  }
  const T* HWY_RESTRICT a = block.a;
  const T* HWY_RESTRICT b = block.b;
  const auto a_stride = static_cast<Index>(block.a_stride), b_stride = static_cast<Index>(block.b_stride);
  for (std::size_t k = 0; k < block.K; ++k) {
    Vector<T> bv[kN];
    HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) bv[n] = hn::LoadU(d, b + n * kLanes);
    HWY_UNROLL(6) for (std::size_t m = 0; m < kM; ++m) {
      const auto av = hn::Set(d, kAcross ? a[m] : a[static_cast<Index>(m) * a_stride]);
      HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) sum[m][n] = hn::MulAdd(av, bv[n], sum[m][n]);
    }
    a += kAcross ? a_stride : 1;
    b += b_stride;
  }
  HWY_UNROLL(6) for (std::size_t m = 0; m < kM; ++m) {
    HWY_UNROLL(4) for (std::size_t n = 0; n < kN; ++n) {
      hn::Store(sum[m][n], d, c + m * block.c_stride + n * kLanes);
    }
  }
}

template <std::size_t kN, bool kAcross, typename T>
HWY_INLINE void MultiplyRows(std::size_t rows, const BlockProduct<T>& block) {
  switch (rows) {
    case 1:
      return MultiplyBlock<1, kN, kAcross>(block);
    case 2:
      return MultiplyBlock<2, kN, kAcross>(block);
    case 3:
      return MultiplyBlock<3, kN, kAcross>(block);
    case 4:
      return MultiplyBlock<4, kN, kAcross>(block);
    case 5:
      return MultiplyBlock<5, kN, kAcross>(block);
    default:
      return MultiplyBlock<6, kN, kAcross>(block);
  }
}

// rows <= kRows, vectors <= kPanelVectors
template <bool kAcross, typename T>
HWY_INLINE void Multiply(std::size_t rows, std::size_t vectors, const BlockProduct<T>& block) {
  switch (vectors) {
    case 1:
      return MultiplyRows<1, kAcross>(rows, block);
#if HWY_TARGET == HWY_AVX3
    case 2:
      return MultiplyRows<2, kAcross>(rows, block);
    case 3:
      return MultiplyRows<3, kAcross>(rows, block);
#endif
    default:
      return MultiplyRows<kPanelVectors, kAcross>(rows, block);
  }
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_PRODUCT_INL_H_
