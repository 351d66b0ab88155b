// Numbers that carry their derivatives along (forward-mode differentiation; Wengert 1964), so that a formula
// written once gives its value and its gradient. regard/custom.h calls a formula with T for its value and
// with Dual<T, n> for its gradient; it may use + - * /, comparisons, numbers of any arithmetic type and the
// functions below, for either type of number.
#ifndef REGARD_DUAL_H_
#define REGARD_DUAL_H_

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace regard {

// A value and its derivatives by n variables.
template <typename T, std::size_t n>
struct Dual {
  T value{};
  T slope[n] = {};

  Dual() = default;
  template <typename U>
  requires std::is_arithmetic_v<U>
  constexpr Dual(U constant) : value(static_cast<T>(constant)) {}
  // The variable number `at`.
  constexpr Dual(T variable, std::size_t at) : value(variable) { slope[at] = T(1); }

  // f(a), with its value and derivative there, and f(a, b) likewise.
  static constexpr Dual Chain(T f, T df, const Dual& a) {
    return Build(
        f, [&](std::size_t at) { return df * a.slope[at]; }, std::make_index_sequence<n>());
  }
  static constexpr Dual Chain(T f, T df_a, const Dual& a, T df_b, const Dual& b) {
    return Build(
        f, [&](std::size_t at) { return df_a * a.slope[at] + df_b * b.slope[at]; },
        std::make_index_sequence<n>());
  }

  friend constexpr Dual operator-(const Dual& a) { return Chain(-a.value, T(-1), a); }
  friend constexpr Dual operator+(const Dual& a, const Dual& b) {
    return Build(
        a.value + b.value, [&](std::size_t at) { return a.slope[at] + b.slope[at]; },
        std::make_index_sequence<n>());
  }
  friend constexpr Dual operator-(const Dual& a, const Dual& b) {
    return Build(
        a.value - b.value, [&](std::size_t at) { return a.slope[at] - b.slope[at]; },
        std::make_index_sequence<n>());
  }
  friend constexpr Dual operator*(const Dual& a, const Dual& b) {
    return Chain(a.value * b.value, b.value, a, a.value, b);
  }
  friend constexpr Dual operator/(const Dual& a, const Dual& b) {
    const T inverse = T(1) / b.value, quotient = a.value / b.value;
    return Chain(quotient, inverse, a, -quotient * inverse, b);
  }
  constexpr Dual& operator+=(const Dual& b) { return *this = *this + b; }
  constexpr Dual& operator-=(const Dual& b) { return *this = *this - b; }
  constexpr Dual& operator*=(const Dual& b) { return *this = *this * b; }
  constexpr Dual& operator/=(const Dual& b) { return *this = *this / b; }

  friend constexpr bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  friend constexpr bool operator>(const Dual& a, const Dual& b) { return a.value > b.value; }
  friend constexpr bool operator<=(const Dual& a, const Dual& b) { return a.value <= b.value; }
  friend constexpr bool operator>=(const Dual& a, const Dual& b) { return a.value >= b.value; }
  friend constexpr bool operator==(const Dual& a, const Dual& b) { return a.value == b.value; }
  friend constexpr bool operator!=(const Dual& a, const Dual& b) { return a.value != b.value; }

 private:
  // Without a loop, so that a compiler holds the derivatives in registers.
  template <typename F, std::size_t... kAt>
  static constexpr Dual Build(T value, const F& slope, std::index_sequence<kAt...>) {
    Dual d;
    d.value = value;
    ((d.slope[kAt] = slope(kAt)), ...);
    return d;
  }
};

// |x|, with derivative 0 at 0
template <std::floating_point T>
T Abs(T x) {
  return std::abs(x);
}
template <typename T, std::size_t n>
Dual<T, n> Abs(const Dual<T, n>& x) {
  return Dual<T, n>::Chain(std::abs(x.value), static_cast<T>((x.value > 0) - (x.value < 0)), x);
}

template <std::floating_point T>
T Sqrt(T x) {
  return std::sqrt(x);
}
template <typename T, std::size_t n>
Dual<T, n> Sqrt(const Dual<T, n>& x) {
  const T root = std::sqrt(x.value);
  return Dual<T, n>::Chain(root, T(0.5) / root, x);
}

// exp and tanh without a call or a branch, so that a loop over them becomes one of vectors.
namespace dual {

template <typename T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <typename T>
T Select(bool condition, T yes, T no) {
  const Bits<T> mask = Bits<T>{0} - Bits<T>{condition};
  return std::bit_cast<T>((std::bit_cast<Bits<T>>(yes) & mask) | (std::bit_cast<Bits<T>>(no) & ~mask));
}

// 2^n for a normal result
template <typename T>
T PowerOf2(int n) {
  constexpr int kFraction = sizeof(T) == 4 ? 23 : 52, kBias = sizeof(T) == 4 ? 127 : 1023;
  using Signed = std::make_signed_t<Bits<T>>;
  return std::bit_cast<T>(static_cast<Signed>(n + kBias) << kFraction);
}

// The Taylor series of exp(r) - 1: r + r^2/2! + ..
template <typename T, std::size_t... kAt>
T SeriesOfExp(T r, std::index_sequence<kAt...>) {
  T sum = 0, factorial = 1;
  constexpr std::size_t kTerms = sizeof...(kAt);
  T inverse[kTerms];
  ((factorial *= static_cast<T>(kAt + 1), inverse[kAt] = 1 / factorial), ...);
  ((sum = sum * r + inverse[kTerms - 1 - kAt]), ...);
  return sum * r;
}

// e^x = 2^n (1 + q) with |log(1 + q)| <= log(2) / 2, for x whose result is in or near the range of T
template <typename T>
struct SplitExp {
  explicit SplitExp(T x) : n(static_cast<int>(x * T(1.4426950408889634) + std::copysign(T(0.5), x))) {
    constexpr bool kSingle = sizeof(T) == 4;
    // log(2) in two parts, n times the first of which is exact
    constexpr T kHigh = kSingle ? T(0.693359375) : T(0.693145751953125);
    constexpr T kLow = kSingle ? T(-2.1219444e-4) : T(1.42860682030941723212e-6);
    const T r = (x - static_cast<T>(n) * kHigh) - static_cast<T>(n) * kLow;
    q = SeriesOfExp(r, std::make_index_sequence < kSingle ? 7 : 13 > ());
  }

  int n;
  T q;
};

}  // namespace dual

template <std::floating_point T>
[[gnu::always_inline]] inline T Exp(T x) {
  constexpr T kLeast = sizeof(T) == 4 ? T(-104) : T(-746), kMost = sizeof(T) == 4 ? T(89) : T(710);
  const T above = dual::Select(x > kLeast, x, kLeast);
  const dual::SplitExp<T> e(dual::Select(above < kMost, above, kMost));
  const int half = e.n >> 1;
  const T result = (1 + e.q) * dual::PowerOf2<T>(half) * dual::PowerOf2<T>(e.n - half);
  return dual::Select(x == x, result, x);
}
template <typename T, std::size_t n>
Dual<T, n> Exp(const Dual<T, n>& x) {
  const T e = Exp(x.value);
  return Dual<T, n>::Chain(e, e, x);
}

template <std::floating_point T>
T Log(T x) {
  return std::log(x);
}
template <typename T, std::size_t n>
Dual<T, n> Log(const Dual<T, n>& x) {
  return Dual<T, n>::Chain(std::log(x.value), T(1) / x.value, x);
}

// expm1(2 |x|) / (expm1(2 |x|) + 2)
template <std::floating_point T>
[[gnu::always_inline]] inline T Tanh(T x) {
  constexpr T kOne = sizeof(T) == 4 ? T(10) : T(20);  // from where on it is 1
  const T size = std::abs(x);
  const dual::SplitExp<T> e(2 * dual::Select(size < kOne, size, kOne));
  const T scale = dual::PowerOf2<T>(e.n), m = scale * e.q + (scale - 1);
  return dual::Select(x == x, std::copysign(m / (m + 2), x), x);
}
template <typename T, std::size_t n>
Dual<T, n> Tanh(const Dual<T, n>& x) {
  const T t = Tanh(x.value);
  return Dual<T, n>::Chain(t, 1 - t * t, x);
}

template <std::floating_point T>
T Sin(T x) {
  return std::sin(x);
}
template <typename T, std::size_t n>
Dual<T, n> Sin(const Dual<T, n>& x) {
  return Dual<T, n>::Chain(std::sin(x.value), std::cos(x.value), x);
}

template <std::floating_point T>
T Cos(T x) {
  return std::cos(x);
}
template <typename T, std::size_t n>
Dual<T, n> Cos(const Dual<T, n>& x) {
  return Dual<T, n>::Chain(std::cos(x.value), -std::sin(x.value), x);
}

// The larger and the smaller; of equals the first, and where one is NaN.
template <std::floating_point T>
T Max(T a, std::type_identity_t<T> b) {
  return dual::Select(a < b, b, a);
}
template <typename T, std::size_t n>
Dual<T, n> Max(const Dual<T, n>& a, const std::type_identity_t<Dual<T, n>>& b) {
  return a < b ? b : a;
}
template <std::floating_point T>
T Min(T a, std::type_identity_t<T> b) {
  return dual::Select(b < a, b, a);
}
template <typename T, std::size_t n>
Dual<T, n> Min(const Dual<T, n>& a, const std::type_identity_t<Dual<T, n>>& b) {
  return b < a ? b : a;
}

}  // namespace regard

#endif  // REGARD_DUAL_H_
