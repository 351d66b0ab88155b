// Numbers that carry their derivatives along (forward-mode differentiation; Wengert 1964), so that a formula
// written once gives its value and its gradient. regard/custom.h calls a formula with T for its value and
// with Dual<T, n> for its gradient; it may use + - * /, comparisons, numbers of any arithmetic type and the
// functions below, for either type of number.
#ifndef REGARD_DUAL_H_
#define REGARD_DUAL_H_

#include <cmath>
#include <cstddef>
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

template <std::floating_point T>
T Exp(T x) {
  return std::exp(x);
}
template <typename T, std::size_t n>
Dual<T, n> Exp(const Dual<T, n>& x) {
  const T e = std::exp(x.value);
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

template <std::floating_point T>
T Tanh(T x) {
  return std::tanh(x);
}
template <typename T, std::size_t n>
Dual<T, n> Tanh(const Dual<T, n>& x) {
  const T t = std::tanh(x.value);
  return Dual<T, n>::Chain(t, T(1) - t * t, x);
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

// The larger and the smaller; of equals the first. U and V are a number each, one of them perhaps plain.
template <typename N>
N Max(const N& a, const std::type_identity_t<N>& b) {
  return a < b ? b : a;
}
template <typename N>
N Min(const N& a, const std::type_identity_t<N>& b) {
  return b < a ? b : a;
}

}  // namespace regard

#endif  // REGARD_DUAL_H_
