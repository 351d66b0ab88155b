// Dropout on a row of weights: the numbers of policies/random.h, a vector at a time.
#if defined(REGARD_ENGINE_KERNELS_RANDOM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_RANDOM_INL_H_
#undef REGARD_ENGINE_KERNELS_RANDOM_INL_H_
#else
#define REGARD_ENGINE_KERNELS_RANDOM_INL_H_
#endif

#include "engine/kernels/math-inl.h"
#include "engine/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

using BitLanes = hn::CappedTag<std::uint64_t, 8>;

template <typename V>
HWY_INLINE V MixVector(V z) {
  const BitLanes d;
  z = hn::Mul(hn::Xor(z, hn::ShiftRight<30>(z)), hn::Set(d, 0xBF58476D1CE4E5B9u));
  z = hn::Mul(hn::Xor(z, hn::ShiftRight<27>(z)), hn::Set(d, 0x94D049BB133111EBu));
  return hn::Xor(z, hn::ShiftRight<31>(z));
}

// p_x *= 0 or 1 / (1 - probability), for the keys j0 + x, first <= x < end, whole vectors.
template <typename T>
HWY_INLINE void DropRow(const Problem<T>& problem, const RandomRow& random, Index j0, std::size_t first,
                        std::size_t end, T* p) {
  const BitLanes d;
  const Lanes<T> dt;
  constexpr std::size_t kLanes = LanesOf<T>();
  const auto threshold = hn::Set(d, problem.dropout.threshold() << 11);  // compared before the shift
  const auto kept = hn::Set(dt, static_cast<T>(problem.dropout.scale()));
  const auto step = hn::Set(d, RandomRow::kStep);
  auto z = hn::Add(hn::Set(d, random.key()),
                   hn::Mul(hn::Iota(d, static_cast<std::uint64_t>(j0) + first + 1), step));
  const auto next = hn::Set(d, RandomRow::kStep * hn::Lanes(d));
  for (std::size_t x = first; x < end; x += kLanes) {
    HWY_ALIGN T scales[kLanes];
    for (std::size_t at = 0; at < kLanes; at += hn::Lanes(d)) {
      const auto keeps = hn::Not(hn::Lt(MixVector(z), threshold));
      z = hn::Add(z, next);
      if constexpr (sizeof(T) == 8) {
        const auto scale = hn::IfThenElseZero(hn::RebindMask(dt, keeps), kept);
        hn::Store(scale, dt, scales);
      } else {
        const hn::Rebind<std::uint32_t, BitLanes> half;
        hn::Store(hn::TruncateTo(half, hn::VecFromMask(d, keeps)), half,
                  reinterpret_cast<std::uint32_t*>(scales) + at);
      }
    }
    auto scale = hn::Load(dt, scales);
    if constexpr (sizeof(T) == 4) scale = hn::And(scale, kept);
    hn::Store(hn::Mul(hn::Load(dt, p + x), scale), dt, p + x);
  }
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_RANDOM_INL_H_
