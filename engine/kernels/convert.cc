// The conversions of regard/half.h, a vector at a time: each line of arithmetic there is one here.
#include "engine/kernels/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/convert.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace regard::engine::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;
using Words = hn::Vec<U32>;  // bits of floats, or numbers of 16 bits

HWY_INLINE Words BitsOfFloat(Words half, BFloat16) { return hn::ShiftLeft<16>(half); }

HWY_INLINE Words BitsOfFloat(Words half, Float16) {
  const U32 d;
  const Words sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000u)));
  const Words size = hn::And(half, hn::Set(d, 0x7FFFu)), bias = hn::Set(d, 112u << 23);
  const Words normal = hn::Add(hn::ShiftLeft<13>(size), bias);
  const auto value = hn::ConvertTo(F32(), hn::BitCast(I32(), size));
  const Words subnormal = hn::BitCast(d, hn::Mul(value, hn::Set(F32(), 0x1p-24f)));
  const Words finite = hn::IfThenElse(hn::Lt(size, hn::Set(d, 0x400u)), subnormal, normal);
  const auto is_finite = hn::Lt(size, hn::Set(d, 0x7C00u));
  return hn::Or(sign, hn::IfThenElse(is_finite, finite, hn::Add(finite, bias)));
}

HWY_INLINE Words HalfOfBits(Words x, BFloat16) {
  const U32 d;
  const auto nan = hn::Gt(hn::And(x, hn::Set(d, 0x7FFFFFFFu)), hn::Set(d, 0x7F800000u));
  const Words tie = hn::And(hn::ShiftRight<16>(x), hn::Set(d, 1u));
  const Words rounded = hn::Add(hn::Add(x, hn::Set(d, 0x7FFFu)), tie);
  return hn::ShiftRight<16>(hn::IfThenElse(nan, hn::Or(x, hn::Set(d, 0x400000u)), rounded));
}

HWY_INLINE Words HalfOfBits(Words x, Float16) {
  const U32 d;
  const Words sign = hn::And(x, hn::Set(d, 0x80000000u)), size = hn::Xor(x, sign);
  const Words fraction = hn::And(hn::ShiftRight<13>(size), hn::Set(d, 0x3FFu));
  const auto above = hn::Add(hn::BitCast(F32(), size), hn::Set(F32(), 0.5f));
  const Words subnormal = hn::Sub(hn::BitCast(d, above), hn::BitCast(d, hn::Set(F32(), 0.5f)));
  const Words tie = hn::And(hn::ShiftRight<13>(size), hn::Set(d, 1u));
  const Words normal =
      hn::ShiftRight<13>(hn::Sub(hn::Add(hn::Add(size, hn::Set(d, 0xFFFu)), tie), hn::Set(d, 112u << 23)));
  Words half = hn::Set(d, 0x7C00u);
  half = hn::IfThenElse(hn::Lt(size, hn::Set(d, 0x47800000u)), normal, half);
  half = hn::IfThenElse(hn::Lt(size, hn::Set(d, 0x38800000u)), subnormal, half);
  half = hn::IfThenElse(hn::Gt(size, hn::Set(d, 0x7F800000u)), hn::Or(hn::Set(d, 0x7E00u), fraction), half);
  return hn::Or(hn::ShiftRight<16>(sign), half);
}

template <typename T>
void ToFloat(const T* from, std::int64_t n, float* to) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F32()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Words x = BitsOfFloat(hn::PromoteTo(U32(), hn::LoadU(U16(), halves + i)), T());
    hn::StoreU(hn::BitCast(F32(), x), F32(), to + i);
  }
  for (; i < n; ++i) to[i] = from[i];
}

template <typename T>
void FromFloat(const float* from, std::int64_t n, T* to) {
  auto* halves = reinterpret_cast<std::uint16_t*>(to);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F32()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Words x = HalfOfBits(hn::BitCast(U32(), hn::LoadU(F32(), from + i)), T());
    hn::StoreU(hn::DemoteTo(U16(), hn::BitCast(I32(), x)), U16(), halves + i);
  }
  for (; i < n; ++i) to[i] = T(from[i]);
}

void BFloat16ToFloat(const BFloat16* from, std::int64_t n, float* to) { ToFloat(from, n, to); }
void Float16ToFloat(const Float16* from, std::int64_t n, float* to) { ToFloat(from, n, to); }
void FloatToBFloat16(const float* from, std::int64_t n, BFloat16* to) { FromFloat(from, n, to); }
void FloatToFloat16(const float* from, std::int64_t n, Float16* to) { FromFloat(from, n, to); }

}  // namespace regard::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::engine {

HWY_EXPORT(BFloat16ToFloat);
HWY_EXPORT(Float16ToFloat);
HWY_EXPORT(FloatToBFloat16);
HWY_EXPORT(FloatToFloat16);

void Convert(const BFloat16* from, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(BFloat16ToFloat)(from, n, to);
}
void Convert(const Float16* from, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(Float16ToFloat)(from, n, to);
}
void Convert(const float* from, std::int64_t n, BFloat16* to) {
  HWY_DYNAMIC_DISPATCH(FloatToBFloat16)(from, n, to);
}
void Convert(const float* from, std::int64_t n, Float16* to) {
  HWY_DYNAMIC_DISPATCH(FloatToFloat16)(from, n, to);
}

}  // namespace regard::engine
#endif  // HWY_ONCE
