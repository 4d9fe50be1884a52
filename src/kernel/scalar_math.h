// SPDX-License-Identifier: MIT
// Scalar reference semantics of the CPU column of ops/pointwise.def. Reals are double. Integers
// wrap; x / 0 and x % 0 are 0; shift counts are taken modulo 32. simd_vec-inl.h and simd_math-inl.h
// define the same functions for vectors.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tensorgrad::scalar_math {

template <class T>
struct Scalar {
  static_assert(std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
                std::is_same_v<T, std::uint32_t>);
  T v;

  friend bool operator==(Scalar a, Scalar b) { return a.v == b.v; }
  friend bool operator!=(Scalar a, Scalar b) { return a.v != b.v; }
  friend bool operator<(Scalar a, Scalar b) { return a.v < b.v; }
  friend bool operator<=(Scalar a, Scalar b) { return a.v <= b.v; }
  friend bool operator>(Scalar a, Scalar b) { return a.v > b.v; }
  friend bool operator>=(Scalar a, Scalar b) { return a.v >= b.v; }
};

using Real = Scalar<double>;
using Int = Scalar<std::int32_t>;
using Uint = Scalar<std::uint32_t>;

// Tag for the target type of a cast: Real, Int, Uint or bool.
template <class T>
struct To {};

// The type in which arithmetic of T wraps: unsigned for integers, double for double.
template <class T>
using Wrapping = std::conditional_t<std::is_same_v<T, double>, double, std::uint32_t>;

template <class T>
Scalar<T> wrap(Wrapping<T> v) {
  return {static_cast<T>(v)};
}
template <class T>
Wrapping<T> raw(Scalar<T> a) {
  return static_cast<Wrapping<T>>(a.v);
}

template <class T>
Scalar<T> operator+(Scalar<T> a, Scalar<T> b) {
  return wrap<T>(raw(a) + raw(b));
}
template <class T>
Scalar<T> operator-(Scalar<T> a, Scalar<T> b) {
  return wrap<T>(raw(a) - raw(b));
}
template <class T>
Scalar<T> operator*(Scalar<T> a, Scalar<T> b) {
  return wrap<T>(raw(a) * raw(b));
}
template <class T>
Scalar<T> operator-(Scalar<T> a) {
  if constexpr (std::is_same_v<T, double>) return {-a.v};
  return wrap<T>(Wrapping<T>{0} - raw(a));
}
template <class T>
Scalar<T> operator/(Scalar<T> a, Scalar<T> b) {
  if constexpr (std::is_integral_v<T>) {
    if (b.v == 0) return {0};
    if (b.v == static_cast<T>(-1) && std::is_signed_v<T>) return -a;
  }
  return {a.v / b.v};
}
template <class T>
Scalar<T> operator%(Scalar<T> a, Scalar<T> b) {
  if constexpr (std::is_same_v<T, double>) {
    return {std::fmod(a.v, b.v)};
  } else {
    if (b.v == 0 || (b.v == static_cast<T>(-1) && std::is_signed_v<T>)) return {0};
    return {a.v % b.v};
  }
}

template <class T>
Scalar<T> operator&(Scalar<T> a, Scalar<T> b) {
  return {a.v & b.v};
}
template <class T>
Scalar<T> operator|(Scalar<T> a, Scalar<T> b) {
  return {a.v | b.v};
}
template <class T>
Scalar<T> operator^(Scalar<T> a, Scalar<T> b) {
  return {a.v ^ b.v};
}
template <class T>
Scalar<T> operator~(Scalar<T> a) {
  return {~a.v};
}
template <class T>
Scalar<T> operator<<(Scalar<T> a, Scalar<T> count) {
  return wrap<T>(raw(a) << (raw(count) & 31U));
}
// Arithmetic shift for i32, logical for u32.
template <class T>
Scalar<T> operator>>(Scalar<T> a, Scalar<T> count) {
  return {static_cast<T>(a.v >> (raw(count) & 31U))};
}
inline Uint mul_high(Uint a, Uint b) {
  return {static_cast<std::uint32_t>((static_cast<std::uint64_t>(a.v) * b.v) >> 32U)};
}
inline Uint like(Uint, std::uint32_t bits) { return {bits}; }

template <class T>
Scalar<T> where(bool condition, Scalar<T> a, Scalar<T> b) {
  return condition ? a : b;
}
inline bool where(bool condition, bool a, bool b) { return condition ? a : b; }

#define TENSORGRAD_INLINE inline
#include "kernel/philox.inc"
#undef TENSORGRAD_INLINE

inline bool isnan(Real a) { return std::isnan(a.v); }
template <class T>
bool isnan(Scalar<T>) {
  return false;
}
inline bool isfinite(Real a) { return std::isfinite(a.v); }
template <class T>
bool isfinite(Scalar<T>) {
  return true;
}

// Returns NaN if an operand is NaN.
template <class T>
Scalar<T> minimum(Scalar<T> a, Scalar<T> b) {
  return a < b || isnan(a) ? a : b;
}
template <class T>
Scalar<T> maximum(Scalar<T> a, Scalar<T> b) {
  return a > b || isnan(a) ? a : b;
}
template <class T>
Scalar<T> abs(Scalar<T> a) {
  if constexpr (std::is_same_v<T, double>) return {std::fabs(a.v)};
  return a < Scalar<T>{0} ? -a : a;
}
// Returns 0 for zeros and NaN, as in PyTorch.
template <class T>
Scalar<T> sign(Scalar<T> a) {
  const Scalar<T> zero{0};
  return {static_cast<T>((a > zero) - (a < zero))};
}
template <class T>
Scalar<T> relu(Scalar<T> a) {
  return a.v <= 0 ? Scalar<T>{0} : a;
}

inline Real pow(Real a, Real b) { return {std::pow(a.v, b.v)}; }
// By repeated squaring. For a negative exponent, the power is 1 or -1 if the base is 1 or -1,
// otherwise 0.
template <class T>
Scalar<T> pow(Scalar<T> a, Scalar<T> b) {
  const Scalar<T> one{1};
  if (b < Scalar<T>{0} && a != one && a != -one) return {0};
  Scalar<T> y = one;
  for (std::uint32_t n = raw(b); n != 0; n >>= 1U, a = a * a) {
    if ((n & 1U) != 0) y = y * a;
  }
  return y;
}
inline Real atan2(Real a, Real b) { return {std::atan2(a.v, b.v)}; }
template <class T>
Scalar<T> floor(Scalar<T> a) {
  return a;
}
template <class T>
Scalar<T> ceil(Scalar<T> a) {
  return a;
}
template <class T>
Scalar<T> round(Scalar<T> a) {
  return a;
}
template <class T>
Scalar<T> trunc(Scalar<T> a) {
  return a;
}
inline Real floor(Real a) { return {std::floor(a.v)}; }
inline Real ceil(Real a) { return {std::ceil(a.v)}; }
inline Real round(Real a) { return {std::nearbyint(a.v)}; }
inline Real trunc(Real a) { return {std::trunc(a.v)}; }
// Rounds to the nearest IEEE 754 binary16, ties to even. Returns an infinity if |a| >= 65520.
inline Real round_to_f16(Real a) {
  if (!std::isfinite(a.v) || a.v == 0) return a;
  const int exponent = std::ilogb(a.v) < -14 ? -14 : std::ilogb(a.v);
  const double step = std::ldexp(1.0, exponent - 10);
  const double rounded = std::nearbyint(a.v / step) * step;
  const bool over = std::abs(rounded) > 65504;
  return {over ? std::copysign(std::numeric_limits<double>::infinity(), a.v) : rounded};
}
inline Real exp(Real a) { return {std::exp(a.v)}; }
inline Real exp2(Real a) { return {std::exp2(a.v)}; }
inline Real expm1(Real a) { return {std::expm1(a.v)}; }
inline Real log(Real a) { return {std::log(a.v)}; }
inline Real log2(Real a) { return {std::log2(a.v)}; }
inline Real log1p(Real a) { return {std::log1p(a.v)}; }
inline Real sqrt(Real a) { return {std::sqrt(a.v)}; }
inline Real rsqrt(Real a) { return {1 / std::sqrt(a.v)}; }
inline Real reciprocal(Real a) { return {1 / a.v}; }
inline Real sin(Real a) { return {std::sin(a.v)}; }
inline Real cos(Real a) { return {std::cos(a.v)}; }
inline Real tan(Real a) { return {std::tan(a.v)}; }
inline Real tanh(Real a) { return {std::tanh(a.v)}; }
inline Real sinh(Real a) { return {std::sinh(a.v)}; }
inline Real asinh(Real a) { return {std::asinh(a.v)}; }
inline Real acosh(Real a) { return {std::acosh(a.v)}; }
inline Real atanh(Real a) { return {std::atanh(a.v)}; }
inline Real erf(Real a) { return {std::erf(a.v)}; }
inline Real sigmoid(Real a) {
  const double e = std::exp(-std::fabs(a.v));
  return {(a.v < 0 ? e : 1) / (1 + e)};
}
// log(1 + e^a)
inline Real softplus(Real a) {
  return {(a.v > 0 ? a.v : 0) + std::log1p(std::exp(-std::fabs(a.v)))};
}

// ---- casts -----------------------------------------------------------------------------------

// Truncates towards zero. Saturates if the value is out of range; returns 0 for NaN.
template <class T>
Scalar<T> saturate(double v) {
  if (std::isnan(v)) return {0};
  if (v <= static_cast<double>(std::numeric_limits<T>::min())) {
    return {std::numeric_limits<T>::min()};
  }
  if (v >= static_cast<double>(std::numeric_limits<T>::max())) {
    return {std::numeric_limits<T>::max()};
  }
  return {static_cast<T>(v)};
}

template <class From, class T>
Scalar<T> convert(Scalar<From> a, To<Scalar<T>>) {
  if constexpr (std::is_same_v<From, double> && !std::is_same_v<T, double>) {
    return saturate<T>(a.v);
  } else {
    return {static_cast<T>(a.v)};
  }
}
template <class T>
Scalar<T> convert(bool a, To<Scalar<T>>) {
  return {static_cast<T>(a ? 1 : 0)};
}
template <class From>
bool convert(Scalar<From> a, To<bool>) {
  return a.v != 0;
}
inline bool convert(bool a, To<bool>) { return a; }

// Returns the 32-bit word of a number; for a real, that of the nearest float.
inline std::uint32_t word(Real a) { return std::bit_cast<std::uint32_t>(static_cast<float>(a.v)); }
inline std::uint32_t word(Int a) { return static_cast<std::uint32_t>(a.v); }
inline std::uint32_t word(Uint a) { return a.v; }

template <class From, class T>
Scalar<T> bitcast(Scalar<From> a, To<Scalar<T>>) {
  if constexpr (std::is_same_v<T, double>) {
    return {static_cast<double>(std::bit_cast<float>(word(a)))};
  } else {
    return {static_cast<T>(word(a))};
  }
}

}  // namespace tensorgrad::scalar_math
