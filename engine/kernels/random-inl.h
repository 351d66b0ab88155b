// The numbers of policies/random.h, a vector at a time; dropout on a row of weights.
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

// 1 - u in units of which 1 has kUnitsOfOne, rounded down; u as in RandomRow.
inline constexpr double kUnitsOfOne = 0x1p31;
template <typename T>
HWY_INLINE T UnitsBelowOne(std::uint64_t bits) {
  return static_cast<T>(static_cast<std::int32_t>(~bits >> 33));
}

// The random bits of one key after the other.
class RandomVectors {
 public:
  HWY_INLINE RandomVectors(const RandomRow& random, Index j0) {
    const BitLanes d;
    z_ = hn::Add(hn::Set(d, random.key()),
                 hn::Mul(hn::Iota(d, static_cast<std::uint64_t>(j0) + 1), hn::Set(d, RandomRow::kStep)));
  }

  HWY_INLINE hn::Vec<BitLanes> Next() {
    const BitLanes d;
    const auto bits = MixVector(z_);
    z_ = hn::Add(z_, hn::Set(d, RandomRow::kStep * hn::Lanes(d)));
    return bits;
  }

  // Of the next LanesOf<T> keys.
  template <typename T>
  HWY_INLINE Vector<T> UnitsBelowOne() {
    const Lanes<T> d;
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(d, HWY_NAMESPACE::UnitsBelowOne<T>(hn::GetLane(Next())));
#else
    const hn::RebindToSigned<Lanes<T> > di;
    if constexpr (sizeof(T) == 8) {
      return hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<33>(hn::Not(Next()))));
    } else {
      const hn::RebindToUnsigned<Lanes<T> > du;
      const auto low = hn::BitCast(du, Next()), high = hn::BitCast(du, Next());
      const auto upper_halves = hn::ConcatOdd(du, high, low);
      return hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<1>(hn::Not(upper_halves))));
    }
#endif
  }

 private:
  hn::Vec<BitLanes> z_;
};

// p_x *= 0 or 1 / (1 - probability), for the keys j0 + x, first <= x < end, whole vectors.
template <typename T>
HWY_INLINE void DropRow(const Problem<T>& problem, const RandomRow& random, Index j0, std::size_t first,
                        std::size_t end, T* p) {
  const BitLanes d;
  const Lanes<T> dt;
  constexpr std::size_t kLanes = LanesOf<T>();
  const auto threshold = hn::Set(d, problem.dropout.threshold() << 11);  // compared before the shift
  const auto kept = hn::Set(dt, static_cast<T>(problem.dropout.scale()));
  RandomVectors bits(random, j0 + static_cast<Index>(first));
  for (std::size_t x = first; x < end; x += kLanes) {
    HWY_ALIGN T scales[kLanes];
    for (std::size_t at = 0; at < kLanes; at += hn::Lanes(d)) {
      const auto keeps = hn::Not(hn::Lt(bits.Next(), threshold));
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
