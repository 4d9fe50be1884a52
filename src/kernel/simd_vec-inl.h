// SPDX-License-Identifier: MIT
// Highway vectors of at most 16 four-byte lanes, with operators. Names and semantics are those of
// scalar_math.h. Compiled once per instruction set, after foreach_target.
#if defined(TENSORGRAD_KERNEL_SIMD_VEC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORGRAD_KERNEL_SIMD_VEC_INL_H
#undef TENSORGRAD_KERNEL_SIMD_VEC_INL_H
#else
#define TENSORGRAD_KERNEL_SIMD_VEC_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernel/scalar_math.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::CappedTag<T, 16>;

template <class T>
struct Vec {
  decltype(hn::Zero(Tag<T>())) v;
};
using F = Vec<float>;
using I = Vec<std::int32_t>;
using U = Vec<std::uint32_t>;

// One boolean per lane. The mask type of u32 serves all three element types.
struct Mask {
  decltype(hn::Eq(hn::Zero(Tag<std::uint32_t>()), hn::Zero(Tag<std::uint32_t>()))) m;
};

// Tag for the target type of a cast: F, I, U or Mask.
template <class T>
struct To {};

template <class T, class M>
HWY_INLINE Mask mask_of(M m) {
  return {hn::RebindMask(Tag<std::uint32_t>(), m)};
}
template <class T>
HWY_INLINE Vec<T> set(T value) {
  return {hn::Set(Tag<T>(), value)};
}
HWY_INLINE U like(U, std::uint32_t bits) { return set(bits); }

template <class T>
HWY_INLINE Vec<T> load(const T* from) {
  return {hn::Load(Tag<T>(), from)};
}
template <class T>
HWY_INLINE void store(Vec<T> a, T* to) {
  hn::Store(a.v, Tag<T>(), to);
}

// Reinterprets the bits as another type.
template <class T, class From>
HWY_INLINE Vec<T> bits_as(Vec<From> a) {
  return {hn::BitCast(Tag<T>(), a.v)};
}

// ---- lane by lane ----------------------------------------------------------------------------

// Calls fn(a[i], b[i]) per lane, for operations that have no instruction and need not be fast.
template <class T, class Fn>
HWY_NOINLINE void map_lanes(Fn fn, const T* a, const T* b, T* out) {
  for (std::size_t i = 0; i < hn::Lanes(Tag<T>()); ++i) out[i] = fn(a[i], b[i]);
}
template <class T, class Fn>
HWY_INLINE Vec<T> by_lanes(Fn fn, Vec<T> a, Vec<T> b) {
  alignas(64) T x[16], y[16];
  store(a, x);
  store(b, y);
  map_lanes<T>(fn, x, y, x);
  return load(x);
}

// ---- operators -------------------------------------------------------------------------------

template <class T>
HWY_INLINE Vec<T> operator+(Vec<T> a, Vec<T> b) {
  return {hn::Add(a.v, b.v)};
}
template <class T>
HWY_INLINE Vec<T> operator-(Vec<T> a, Vec<T> b) {
  return {hn::Sub(a.v, b.v)};
}
template <class T>
HWY_INLINE Vec<T> operator*(Vec<T> a, Vec<T> b) {
  return {hn::Mul(a.v, b.v)};
}
template <class T>
HWY_INLINE Vec<T> operator-(Vec<T> a) {
  if constexpr (std::is_same_v<T, float>) return {hn::Neg(a.v)};
  return {hn::Sub(hn::Zero(Tag<T>()), a.v)};
}
template <class T>
HWY_INLINE Vec<T> operator/(Vec<T> a, Vec<T> b) {
  if constexpr (std::is_same_v<T, float>) {
    return {hn::Div(a.v, b.v)};
  } else {
    using scalar_math::Scalar;
    return by_lanes([](T x, T y) { return (Scalar<T>{x} / Scalar<T>{y}).v; }, a, b);
  }
}
template <class T>
HWY_INLINE Vec<T> operator&(Vec<T> a, Vec<T> b) {
  return {hn::And(a.v, b.v)};
}
template <class T>
HWY_INLINE Vec<T> operator|(Vec<T> a, Vec<T> b) {
  return {hn::Or(a.v, b.v)};
}
template <class T>
HWY_INLINE Vec<T> operator^(Vec<T> a, Vec<T> b) {
  return {hn::Xor(a.v, b.v)};
}
template <class T>
HWY_INLINE Vec<T> operator<<(Vec<T> a, Vec<T> count) {
  return {a.v << hn::And(count.v, hn::Set(Tag<T>(), T{31}))};
}
template <class T>
HWY_INLINE Vec<T> operator>>(Vec<T> a, Vec<T> count) {
  return {a.v >> hn::And(count.v, hn::Set(Tag<T>(), T{31}))};
}
template <int kBits, class T>
HWY_INLINE Vec<T> shift_left(Vec<T> a) {
  return {hn::ShiftLeft<kBits>(a.v)};
}
template <int kBits, class T>
HWY_INLINE Vec<T> shift_right(Vec<T> a) {
  return {hn::ShiftRight<kBits>(a.v)};
}
// Returns the upper 32 bits of the 64-bit products.
HWY_INLINE U mul_high(U a, U b) {
#if HWY_TARGET == HWY_SCALAR
  return by_lanes(
      [](std::uint32_t x, std::uint32_t y) {
        return scalar_math::mul_high(scalar_math::Uint{x}, scalar_math::Uint{y}).v;
      },
      a, b);
#else
  const Tag<std::uint32_t> d;
  const hn::Repartition<std::uint64_t, Tag<std::uint32_t>> d64;
  const auto odd = [&](U x) { return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, x.v))); };
  const auto even_high = hn::ShiftRight<32>(hn::MulEven(a.v, b.v));
  const auto odd_high = hn::MulEven(odd(a), odd(b));
  return {hn::OddEven(hn::BitCast(d, odd_high), hn::BitCast(d, even_high))};
#endif
}

template <class T>
HWY_INLINE Mask operator==(Vec<T> a, Vec<T> b) {
  return mask_of<T>(hn::Eq(a.v, b.v));
}
// Does not use Highway's Ne, which returns false for NaN on AVX2.
template <class T>
HWY_INLINE Mask operator!=(Vec<T> a, Vec<T> b) {
  return mask_of<T>(hn::Not(hn::Eq(a.v, b.v)));
}
template <class T>
HWY_INLINE Mask operator<(Vec<T> a, Vec<T> b) {
  return mask_of<T>(hn::Lt(a.v, b.v));
}
template <class T>
HWY_INLINE Mask operator>(Vec<T> a, Vec<T> b) {
  return mask_of<T>(hn::Gt(a.v, b.v));
}
template <class T>
HWY_INLINE Mask operator<=(Vec<T> a, Vec<T> b) {
  if constexpr (std::is_same_v<T, float>) return mask_of<T>(hn::Le(a.v, b.v));
  return mask_of<T>(hn::Not(hn::Gt(a.v, b.v)));
}
template <class T>
HWY_INLINE Mask operator>=(Vec<T> a, Vec<T> b) {
  if constexpr (std::is_same_v<T, float>) return mask_of<T>(hn::Ge(a.v, b.v));
  return mask_of<T>(hn::Not(hn::Lt(a.v, b.v)));
}
HWY_INLINE Mask operator&&(Mask a, Mask b) { return {hn::And(a.m, b.m)}; }
HWY_INLINE Mask operator||(Mask a, Mask b) { return {hn::Or(a.m, b.m)}; }
HWY_INLINE Mask operator!=(Mask a, Mask b) { return {hn::Xor(a.m, b.m)}; }
HWY_INLINE Mask operator!(Mask a) { return {hn::Not(a.m)}; }
HWY_INLINE Mask operator==(Mask a, Mask b) { return !(a != b); }
HWY_INLINE bool any(Mask a) { return !hn::AllFalse(Tag<std::uint32_t>(), a.m); }

template <class T>
HWY_INLINE Vec<T> where(Mask condition, Vec<T> a, Vec<T> b) {
  return {hn::IfThenElse(hn::RebindMask(Tag<T>(), condition.m), a.v, b.v)};
}
HWY_INLINE Mask where(Mask condition, Mask a, Mask b) {
  return (condition && a) || (!condition && b);
}
// In memory, a boolean is the word 0 or 1.
HWY_INLINE Mask load_mask(const std::uint32_t* from) { return load(from) != set(0U); }
HWY_INLINE void store(Mask a, std::uint32_t* to) { store(where(a, set(1U), set(0U)), to); }

#define TENSORGRAD_INLINE HWY_INLINE
#include "kernel/philox.inc"
#undef TENSORGRAD_INLINE

// ---- simple functions ------------------------------------------------------------------------

HWY_INLINE Mask isnan(F a) { return mask_of<float>(hn::IsNaN(a.v)); }
HWY_INLINE Mask isfinite(F a) {
  const U exponent = set(0x7F800000U);
  return (bits_as<std::uint32_t>(a) & exponent) != exponent;
}

// Returns NaN if an operand is NaN: `a` is tested, and if `b` is NaN the comparison is false.
template <class T>
HWY_INLINE Vec<T> minimum(Vec<T> a, Vec<T> b) {
  if constexpr (std::is_same_v<T, float>) return where(a < b || isnan(a), a, b);
  return {hn::Min(a.v, b.v)};
}
template <class T>
HWY_INLINE Vec<T> maximum(Vec<T> a, Vec<T> b) {
  if constexpr (std::is_same_v<T, float>) return where(a > b || isnan(a), a, b);
  return {hn::Max(a.v, b.v)};
}
// If `a` is NaN, the result depends on the machine.
HWY_INLINE F clamp_number(F a, float lo, float hi) {
  return {hn::Max(hn::Min(a.v, set(hi).v), set(lo).v)};
}
HWY_INLINE F abs(F a) { return {hn::Abs(a.v)}; }
HWY_INLINE I abs(I a) { return {hn::Abs(a.v)}; }
HWY_INLINE U abs(U a) { return a; }
template <class T>
HWY_INLINE Vec<T> sign(Vec<T> a) {
  const Vec<T> zero = set(T{0}), one = set(T{1});
  return where(a > zero, one, where(a < zero, -one, zero));
}
template <class T>
HWY_INLINE Vec<T> relu(Vec<T> a) {
  const Vec<T> zero = set(T{0});
  return where(a <= zero, zero, a);
}

HWY_INLINE F floor(F a) { return {hn::Floor(a.v)}; }
HWY_INLINE F ceil(F a) { return {hn::Ceil(a.v)}; }
HWY_INLINE F round(F a) { return {hn::Round(a.v)}; }
HWY_INLINE F trunc(F a) { return {hn::Trunc(a.v)}; }
HWY_INLINE F sqrt(F a) { return {hn::Sqrt(a.v)}; }
HWY_INLINE F reciprocal(F a) { return set(1.0F) / a; }
HWY_INLINE F rsqrt(F a) { return reciprocal(sqrt(a)); }

// ---- casts -----------------------------------------------------------------------------------

HWY_INLINE I convert(F a, To<I>) {
  // 2147483520 is the largest float below 2^31.
  const F number = where(isnan(a), set(0.0F), a);
  const F inside = clamp_number(number, -2147483648.0F, 2147483520.0F);
  const I truncated = {hn::ConvertTo(Tag<std::int32_t>(), inside.v)};
  return where(a >= set(2147483648.0F), set(std::int32_t{0x7FFFFFFF}), truncated);
}
HWY_INLINE U convert(F a, To<U>) {
  const F half = set(2147483648.0F);
  const Mask upper = a >= half;
  const F number = where(isnan(a), set(0.0F), where(upper, a - half, a));
  const I truncated = convert(clamp_number(number, 0.0F, 2147483520.0F), To<I>());
  const U low = bits_as<std::uint32_t>(truncated);
  const U whole = where(upper, low ^ set(0x80000000U), low);
  return where(a >= set(4294967296.0F), set(0xFFFFFFFFU), whole);
}
HWY_INLINE F convert(I a, To<F>) { return {hn::ConvertTo(Tag<float>(), a.v)}; }
HWY_INLINE F convert(U a, To<F>) {
  // Both halves are exact, so only the sum is rounded.
  const F high = convert(bits_as<std::int32_t>(shift_right<16>(a)), To<F>());
  const F low = convert(bits_as<std::int32_t>(a & set(0xFFFFU)), To<F>());
  return {hn::MulAdd(high.v, set(65536.0F).v, low.v)};
}
HWY_INLINE U convert(I a, To<U>) { return bits_as<std::uint32_t>(a); }
HWY_INLINE I convert(U a, To<I>) { return bits_as<std::int32_t>(a); }
template <class T>
HWY_INLINE Mask convert(Vec<T> a, To<Mask>) {
  return a != set(T{0});
}
template <class T>
HWY_INLINE Vec<T> convert(Mask a, To<Vec<T>>) {
  return where(a, set(T{1}), set(T{0}));
}
HWY_INLINE F convert(F a, To<F>) { return a; }
HWY_INLINE I convert(I a, To<I>) { return a; }
HWY_INLINE U convert(U a, To<U>) { return a; }
HWY_INLINE Mask convert(Mask a, To<Mask>) { return a; }
template <class From, class T>
HWY_INLINE Vec<T> bitcast(Vec<From> a, To<Vec<T>>) {
  return bits_as<T>(a);
}

}  // namespace tensorgrad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
