// 2^x for the softmax: float32 within 2 units in the last place (1.8 measured), 0 for x below -100, since the
// products of numbers as close to 0 would not be normal, and slow; float64 as hn::Exp. -inf gives 0, NaN
// gives NaN.
#if defined(REGARD_ENGINE_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_EXP_INL_H_
#undef REGARD_ENGINE_KERNELS_EXP_INL_H_
#else
#define REGARD_ENGINE_KERNELS_EXP_INL_H_
#endif

#include <type_traits>

#include "engine/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

inline constexpr float kLeastExponent = -100;
inline constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.69314718055994531;

// c0 + f (c1 + f (...)), highest power first.
template <std::size_t kSize>
HWY_INLINE Vector<float> Horner(Vector<float> f, const float (&c)[kSize]) {
  const Lanes<float> d;
  auto p = hn::Set(d, c[0]);
  HWY_UNROLL(8) for (std::size_t n = 1; n < kSize; ++n) p = hn::MulAdd(p, f, hn::Set(d, c[n]));
  return p;
}

// s scale - shift, the product not rounded. Where there is no fused multiply-add, it is made of halves
// (Dekker 1971, "A floating-point technique for extending the available precision").
template <typename T>
HWY_INLINE Vector<T> Exponent(Vector<T> s, Vector<T> scale, Vector<T> shift) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SCALAR
  const auto high_half = [](Vector<T> x) HWY_ATTR {
    const auto c = hn::Mul(x, hn::Set(Lanes<T>(), sizeof(T) == 4 ? T(4097) : T(134217729)));
    return hn::Sub(c, hn::Sub(c, x));
  };
  const auto product = hn::Mul(s, scale);
  const auto s1 = high_half(s), c1 = high_half(scale);
  const auto s2 = hn::Sub(s, s1), c2 = hn::Sub(scale, c1);
  const auto rest = hn::Add(
      hn::Add(hn::Sub(hn::Mul(s1, c1), product), hn::Add(hn::Mul(s1, c2), hn::Mul(s2, c1))), hn::Mul(s2, c2));
  const auto x = hn::Sub(product, shift);
  return hn::IfThenElse(hn::Eq(rest, rest), hn::Add(x, rest), x);  // an infinity has no halves
#else
  return hn::MulSub(s, scale, shift);
#endif
}

template <typename T>
HWY_INLINE Vector<T> Exp2(Vector<T> x) {
  const Lanes<T> d;
  if constexpr (std::is_same_v<T, double>) {
    return Exp<double>(hn::Mul(x, hn::Set(d, kLn2)));
  } else {
#if HWY_TARGET == HWY_AVX3
    // x = n + f, |f| <= 1/2, without an error: f counted from the floor is rounded where x is just below 0.
    // The polynomial has the least error in units of the last place with 2^0 = 1.
    const Vector<float> f{_mm512_reduce_ps(x.raw, 0x00)};
    const auto n = hn::Sub(x, f);
    const auto p =
        Horner(f, {0.00132257072f, 0.00967176352f, 0.0555089153f, 0.24022235f, 0.693146825f, 1.0f});
    const __mmask16 large = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(kLeastExponent), _CMP_NLT_UQ);
    return Vector<float>{_mm512_maskz_scalef_ps(large, p.raw, n.raw)};
#else
    // x = n + f, |f| <= 1/2; n is read from the last bits of x + 1.5 * 2^23.
    const hn::RebindToSigned<Lanes<T> > di;
    const auto magic = hn::Set(d, 12582912.0f);
    const auto small = hn::Lt(x, hn::Set(d, kLeastExponent));
    const auto t = hn::Add(x, magic);
    const auto f = hn::Sub(x, hn::Sub(t, magic));
    const auto p = Horner(
        f, {0.00015345811f, 0.00133999309f, 0.00961848907f, 0.0555032864f, 0.240226462f, 0.693147182f, 1.0f});
    const auto scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, t))));
    return hn::IfThenElse(hn::Eq(x, x), hn::IfThenZeroElse(small, scaled), x);
#endif
  }
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_EXP_INL_H_
