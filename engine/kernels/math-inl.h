// exp and tanh on vectors, and vectors of which the last is not whole. NaN gives NaN.
#if defined(REGARD_ENGINE_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ENGINE_KERNELS_MATH_INL_H_
#undef REGARD_ENGINE_KERNELS_MATH_INL_H_
#else
#define REGARD_ENGINE_KERNELS_MATH_INL_H_
#endif

#include <cstddef>
#include <type_traits>

#include "engine/kernels/problem.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Lanes = hn::CappedTag<T, kPad>;
template <typename T>
using Vector = hn::Vec<Lanes<T>>;

// The first n < Lanes elements at p, the rest 0. Reads nothing beyond them.
template <typename T>
HWY_INLINE Vector<T> LoadFirst(const T* p, std::size_t n) {
  const Lanes<T> d;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#else
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  for (std::size_t at = 0; at < n; ++at) lanes[at] = p[at];
  return hn::Load(d, lanes);
#endif
}

// Lanes elements from p + at of an array of `size`, those past its end 0.
template <typename T>
HWY_INLINE Vector<T> LoadUpTo(const T* p, std::size_t at, std::size_t size) {
  const Lanes<T> d;
  const std::size_t left = size - at;
  return HWY_LIKELY(left >= hn::Lanes(d)) ? hn::LoadU(d, p + at) : LoadFirst(p + at, left);
}

template <typename T>
HWY_INLINE T SumOf(Vector<T> v) {
  const Lanes<T> d;
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// a·b
template <typename T>
HWY_INLINE T Dot(const T* a, const T* b, std::size_t size) {
  const Lanes<T> d;
  auto sum = hn::Zero(d);
  for (std::size_t at = 0; at < size; at += hn::Lanes(d)) {
    sum = hn::MulAdd(LoadUpTo(a, at, size), LoadUpTo(b, at, size), sum);
  }
  return SumOf<T>(sum);
}

// a_i *= factor over whole vectors
template <typename T>
HWY_INLINE void Scale(T factor, std::size_t padded, T* a) {
  const Lanes<T> d;
  const auto f = hn::Set(d, factor);
  for (std::size_t at = 0; at < padded; at += hn::Lanes(d))
    hn::Store(hn::Mul(f, hn::Load(d, a + at)), d, a + at);
}

// c[last] + x (c[last - 1] + x (...)): the coefficients of a polynomial, highest power first.
template <typename T, std::size_t kSize>
HWY_INLINE Vector<T> Polynomial(Vector<T> x, const T (&c)[kSize]) {
  const Lanes<T> d;
  auto p = hn::Set(d, c[0]);
  for (std::size_t n = 1; n < kSize; ++n) p = hn::MulAdd(p, x, hn::Set(d, c[n]));
  return p;
}

// exp(x) for x up to where it overflows. Float: within 1.3 units in the last place (1 with
// multiply-adds); 0 below -87.33, where the
// result would not be a normal number. Double: within 1 unit.
template <typename T>
HWY_INLINE Vector<T> Exp(Vector<T> x) {
  const Lanes<T> d;
  if constexpr (std::is_same_v<T, double>) {
    const auto number = hn::Eq(x, x);
    return hn::IfThenElse(number, hn::Exp(d, hn::IfThenElseZero(number, x)), x);
  } else {
    // x = n ln 2 + r, |r| <= ln 2 / 2; n are the last bits of x / ln 2 + 1.5 * 2^23, and are added to the
    // exponent of exp(r). Its polynomial has the least error in units of the last place with exp(0) = 1.
    const hn::RebindToSigned<Lanes<T>> di;
    const auto magic = hn::Set(d, 12582912.0f);
    const auto t = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
    const auto n = hn::Sub(t, magic);
    auto r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);  // 16 bits of ln 2: exact
    r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
    const auto p = Polynomial(
        r, {0.00138158712f, 0.00837316085f, 0.0416685343f, 0.166664481f, 0.499999911f, 1.0f, 1.0f});
    const auto y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, t))));
    return hn::IfThenElse(hn::Eq(x, x), hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3365402f)), y), x);
  }
}

// (tanh(x) / x - 1) / x² as a polynomial in u = x², |x| <= 0.625, highest power first. Fitted by Chebyshev
// interpolation; the relative error of tanh is below a tenth of the last place.
template <typename T>
struct TanhPolynomial;
template <>
struct TanhPolynomial<float> {
  static constexpr float kCoefficients[] = {0.0022927448f, -0.0083439455f, 0.021768919f,
                                            -0.053959259f, 0.13333304f,    -0.33333333f};
  static constexpr float kSaturated = 10.0f;  // tanh is 1 from here on
};
template <>
struct TanhPolynomial<double> {
  static constexpr double kCoefficients[] = {
      6.4851634827931131e-6,  -3.12011014257974e-5,   9.2571161295567683e-5, -0.0002375906496055562,
      0.00058966065777570433, -0.0014557754120478055, 0.0035921217511549623, -0.0088632351032408779,
      0.021869488519008306,   -0.053968253967896992,  0.13333333333333042,   -0.33333333333333333};
  static constexpr double kSaturated = 20.0;
};

// Near 0 the polynomial; further out 1 - 2 / (exp(2|x|) + 1), where nothing cancels. Within 1.3 units in the
// last place, double too.
template <typename T>
HWY_INLINE Vector<T> Tanh(Vector<T> x) {
  const Lanes<T> d;
  using P = TanhPolynomial<T>;
  const auto u = hn::Mul(x, x);
  const auto p = Polynomial<T>(u, P::kCoefficients);
  const auto near = hn::MulAdd(hn::Mul(p, u), x, x);

  const auto a = hn::Abs(x);
  const auto clamped = hn::Min(a, hn::Set(d, P::kSaturated));
  const auto one = hn::Set(d, T(1));
  const auto e = Exp<T>(hn::Add(clamped, clamped));
  const auto far = hn::Sub(one, hn::Div(hn::Set(d, T(2)), hn::Add(e, one)));
  const auto tanh = hn::IfThenElse(hn::Lt(a, hn::Set(d, T(0.625))), near, hn::CopySign(far, x));
  return hn::IfThenElse(hn::Eq(x, x), tanh, x);
}

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ENGINE_KERNELS_MATH_INL_H_
