// Numbers stored in 16 bits, with the layout of c10::BFloat16 and c10::Half. They are storage: they become
// float to be calculated with, and float is rounded to them, to the nearest, ties to even; what is too large
// becomes infinite, a NaN stays one.
#ifndef REGARD_HALF_H_
#define REGARD_HALF_H_

#include <bit>
#include <cstdint>
#include <type_traits>

namespace regard {

// The upper half of a float: 8 bits of exponent, 7 of fraction.
struct BFloat16 {
  std::uint16_t bits;

  BFloat16() = default;

  constexpr explicit BFloat16(float value) : bits(0) {
    const auto x = std::bit_cast<std::uint32_t>(value);
    const bool nan = (x & 0x7FFFFFFFu) > 0x7F800000u;
    bits = static_cast<std::uint16_t>((nan ? x | 0x400000u : x + 0x7FFFu + (x >> 16 & 1u)) >> 16);
  }

  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

// binary16 of IEEE 754: 5 bits of exponent, 10 of fraction; up to 65504, and subnormal below 2^-14.
struct Float16 {
  std::uint16_t bits;

  Float16() = default;

  constexpr explicit Float16(float value) : bits(0) {
    const auto x = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = x & 0x80000000u, size = x ^ sign;
    std::uint32_t half = 0x7C00u;  // infinite
    if (size > 0x7F800000u) {      // NaN
      half = 0x7E00u | (size >> 13 & 0x3FFu);
    } else if (size < 0x38800000u) {  // below 2^-14: a multiple of 2^-24, which is the last place of 0.5
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) -
             std::bit_cast<std::uint32_t>(0.5f);
    } else if (size < 0x47800000u) {  // below 2^16: the exponent's bias falls by 112
      half = (size + 0xFFFu + (size >> 13 & 1u) - (112u << 23)) >> 13;
    }
    bits = static_cast<std::uint16_t>(sign >> 16 | half);
  }

  constexpr operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16, size = bits & 0x7FFFu;
    std::uint32_t x = (size << 13) + (112u << 23);
    if (size < 0x400u) x = std::bit_cast<std::uint32_t>(static_cast<float>(size) * 0x1p-24f);
    if (size >= 0x7C00u) x += 112u << 23;  // infinite, NaN
    return std::bit_cast<float>(sign | x);
  }
};

// The type that attention over tensors of T is summed in.
template <typename T>
using SumType = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace regard

#endif  // REGARD_HALF_H_
