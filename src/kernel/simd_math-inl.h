// SPDX-License-Identifier: MIT
// The functions of scalar_math.h for float vectors: exponentials, logarithms, hyperbolic functions
// and erf, with errors of 1 to 3 ulp. Results for infinities, NaN, zeros and denormals are those of
// the C library. The polynomials come from tools/fit_math.py.
#if defined(TENSORGRAD_KERNEL_SIMD_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORGRAD_KERNEL_SIMD_MATH_INL_H
#undef TENSORGRAD_KERNEL_SIMD_MATH_INL_H
#else
#define TENSORGRAD_KERNEL_SIMD_MATH_INL_H
#endif

#include <limits>

#include "kernel/simd_vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::HWY_NAMESPACE {

// Return a * b + c and c - a * b, rounded once if the machine has FMA.
HWY_INLINE F mul_add(F a, F b, F c) { return {hn::MulAdd(a.v, b.v, c.v)}; }
HWY_INLINE F neg_mul_add(F a, F b, F c) { return {hn::NegMulAdd(a.v, b.v, c.v)}; }
HWY_INLINE F copysign(F magnitude, F sign) { return {hn::CopySign(magnitude.v, sign.v)}; }

// c0 + c1 x + c2 x^2 + ...
HWY_INLINE F polynomial(F, float c0) { return set(c0); }
template <class... C>
HWY_INLINE F polynomial(F x, float c0, C... c) {
  return mul_add(polynomial(x, c...), x, set(c0));
}

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kLog2e = 1.44269504F;
// ln 2 = high + low; high has 9 bits, so that its products with small integers are exact.
inline constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;

// ---- exponentials ----------------------------------------------------------------------------

struct NearestInteger {
  F number;
  I integer;
};
// Rounds for |a| < 2^22, ties to even. Adding 1.5 * 2^23 leaves the integer in the low bits.
HWY_INLINE NearestInteger nearest_integer(F a) {
  const F magic = set(12582912.0F);
  const F shifted = a + magic;
  return {shifted - magic, bits_as<std::int32_t>(shifted) - bits_as<std::int32_t>(magic)};
}

// Returns 2^n for -126 <= n <= 127.
HWY_INLINE F power_of_two(I n) {
  return bits_as<float>(shift_left<23>(n + set(std::int32_t{127})));
}

// Returns a * 2^n for |n| <= 252. If the result is denormal, it is rounded once.
HWY_INLINE F scale(F a, I n) {
  const I half = shift_right<1>(n);
  return a * power_of_two(half) * power_of_two(n - half);
}

// Returns r with a = n ln 2 + r and |r| <= ln 2 / 2, for |a| < 1000.
HWY_INLINE F reduce_exp(F a, NearestInteger& n) {
  n = nearest_integer(a * set(kLog2e));
  return neg_mul_add(n.number, set(kLn2Low), neg_mul_add(n.number, set(kLn2High), a));
}

// Returns e^r - 1 for |r| <= ln 2 / 2.
HWY_INLINE F expm1_reduced(F r) {
  const F p = polynomial(r, 0.5F, 0.166666672F, 0.0416664891F, 0.00833320804F, 0.0013932708F,
                         0.000199442715F);
  return mul_add(r * r, p, r);
}

// Returns e^r * 2^n, or exactly 0 if `vanishes`. Products that underflow are a hundred times slower
// on x86, and a masked softmax has many of them.
HWY_INLINE F scaled_exp(F r, I n, Mask vanishes) {
  return scale(where(vanishes, set(0.0F), expm1_reduced(r) + set(1.0F)), n);
}

HWY_INLINE F exp(F a) {
  // Beyond these bounds the float result is 0 or infinity.
  NearestInteger n;
  const F r = reduce_exp(clamp_number(a, -104.0F, 89.0F), n);
  return where(isnan(a), a, scaled_exp(r, n.integer, a < set(-103.98F)));
}

HWY_INLINE F exp2(F a) {
  const F inside = clamp_number(a, -151.0F, 129.0F);
  const NearestInteger n = nearest_integer(inside);
  const F r = (inside - n.number) * set(0.693147182F);
  return where(isnan(a), a, scaled_exp(r, n.integer, a < set(-150.0F)));
}

// e^a - 1 = 2^n (e^r - 1) + (2^n - 1), computed from half of it, as 2^128 is not a float.
HWY_INLINE F expm1(F a) {
  NearestInteger n;
  const F r = reduce_exp(clamp_number(a, -25.0F, 89.0F), n);
  const F tail = expm1_reduced(r);
  const F s = power_of_two(n.integer - set(std::int32_t{1}));
  const F half = mul_add(s, tail, s - set(0.5F));
  const F y = where(n.number == set(0.0F), tail, half + half);
  return where(abs(a) > set(0.0F), y, a);  // NaN and signed zeros
}

// 1 / (1 + e^-a) without overflow, as e^-|a| is at most 1.
HWY_INLINE F sigmoid(F a) {
  const F e = exp(-abs(a));
  return where(a < set(0.0F), e, set(1.0F)) / (e + set(1.0F));
}

// tanh |a| = t / (t + 2) with t = e^(2|a|) - 1; above 9.1 it rounds to 1.
HWY_INLINE F tanh(F a) {
  const F inside = clamp_number(abs(a), 0.0F, 9.1F);
  NearestInteger n;
  const F r = reduce_exp(inside + inside, n);
  const F s = power_of_two(n.integer);
  const F t = mul_add(s, expm1_reduced(r), s - set(1.0F));
  return where(isnan(a), a, copysign(t / (t + set(2.0F)), a));
}

// ---- logarithms ------------------------------------------------------------------------------

// a = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt 2), for 0 < a < infinity.
struct SplitFloat {
  F f;
  I k;
};
HWY_INLINE SplitFloat split(F a) {
  // A denormal may be flushed to zero as a float, but its bits count multiples of 2^-149.
  const I given = bits_as<std::int32_t>(a);
  const Mask denormal = given < set(std::int32_t{0x00800000});
  const I bits = where(denormal, bits_as<std::int32_t>(convert(given, To<F>())), given);
  const I k = shift_right<23>(bits - set(std::int32_t{0x3F3504F3}));
  const F m = bits_as<float>(bits - shift_left<23>(k));
  return {m - set(1.0F), k - where(denormal, set(std::int32_t{149}), set(std::int32_t{0}))};
}

// Returns log(1 + f) - f for f as above.
HWY_INLINE F log_tail(F f) {
  const F p = polynomial(f, 0.333333105F, -0.249999866F, 0.200022236F, -0.166692495F, 0.142187163F,
                         -0.12384402F, 0.118726194F, -0.117893703F, 0.0691561252F);
  return f * f * mul_add(f, p, set(-0.5F));
}

// Returns true for 0 and -0. Tests the bits, as a denormal may compare equal to zero.
HWY_INLINE Mask is_zero(F a) {
  return (bits_as<std::int32_t>(a) & set(std::int32_t{0x7FFFFFFF})) == set(std::int32_t{0});
}

// Returns the logarithm for every `a`, given `y`, which is valid for 0 < a < infinity.
HWY_INLINE F log_edges(F a, F y) {
  const F nan = set(std::numeric_limits<float>::quiet_NaN());
  const I bits = bits_as<std::int32_t>(a);
  const F low = where(is_zero(a), set(-kInfinity), nan);
  return where(bits > set(std::int32_t{0}), where(a < set(kInfinity), y, a), low);
}

// Returns log(2^k (1 + f)).
HWY_INLINE F log_of(SplitFloat s) {
  const F k = convert(s.k, To<F>());
  return mul_add(k, set(kLn2High), s.f + mul_add(k, set(kLn2Low), log_tail(s.f)));
}

HWY_INLINE F log(F a) { return log_edges(a, log_of(split(a))); }

HWY_INLINE F log2(F a) {
  const SplitFloat s = split(a);
  const F tail = log_tail(s.f);
  // log2(e) = 1 + extra, so that most of the product is exact.
  const F extra = set(0.442695041F);
  const F small = mul_add(s.f, extra, mul_add(tail, extra, tail)) + s.f;
  return log_edges(a, convert(s.k, To<F>()) + small);
}

// log(1 + a). The rounding error of u = 1 + a is known and is added to the reduced argument.
HWY_INLINE F log1p(F a) {
  const F one = set(1.0F);
  const F u = a + one;
  const F lost = where(a < one, a - (u - one), one - (u - a));
  SplitFloat s = split(u);
  // k <= 128; beyond 126 the rounding error is negligible.
  const I k = {hn::Min(s.k.v, set(std::int32_t{126}).v)};
  s.f = mul_add(lost, power_of_two(-k), s.f);
  const F y = log_edges(u, log_of(s));
  return where(abs(a) > set(1e-8F), y, a);  // NaN, zeros and denormals unchanged
}

// log(1 + e^a) without overflow
HWY_INLINE F softplus(F a) { return where(a > set(0.0F), a, set(0.0F)) + log1p(exp(-abs(a))); }

// ---- hyperbolic functions ----------------------------------------------------------------------

// (e + e / (e + 1)) / 2 with e = e^|a| - 1. If |a| > 20, (e^(|a|/2))^2 / 2, as e^-|a| is
// negligible.
HWY_INLINE F sinh(F a) {
  const F x = abs(a), e = expm1(x), root = exp(x * set(0.5F));
  const F far = root * set(0.5F) * root;
  return copysign(where(x > set(20.0F), far, set(0.5F) * (e + e / (e + set(1.0F)))), a);
}

// log(x + sqrt(x^2 + 1)) with x = |a|, by log1p; if x > 10^4, log(2 x).
HWY_INLINE F asinh(F a) {
  const F x = abs(a), x2 = x * x, one = set(1.0F);
  const F near = log1p(x + x2 / (one + sqrt(x2 + one)));
  return copysign(where(x > set(1e4F), log(x) + set(0.693147182F), near), a);
}

// log(a + sqrt(a^2 - 1)), by log1p; if a > 10^4, log(2 a).
HWY_INLINE F acosh(F a) {
  const F more = a - set(1.0F);
  const F near = log1p(more + sqrt(more * (a + set(1.0F))));
  const F y = where(a > set(1e4F), log(a) + set(0.693147182F), near);
  return where(a < set(1.0F), set(std::numeric_limits<float>::quiet_NaN()), y);
}

// log((1 + x) / (1 - x)) / 2 with x = |a|
HWY_INLINE F atanh(F a) {
  const F x = abs(a);
  return copysign(set(0.5F) * log1p((x + x) / (set(1.0F) - x)), a);
}

// ---- error function --------------------------------------------------------------------------

// Up to 1: x + x p(x^2). Above: 1 - e^(-q) with q = x + x p(x); from 4 on it rounds to 1.
HWY_INLINE F erf(F a) {
  const F x = abs(a), x2 = a * a;
  const F low = polynomial(x2, 0.128379166F, -0.37612626F, 0.112835787F, -0.0268533472F,
                           0.0051871622F, -0.00079978531F, 7.80690389e-05F);
  const F inside = clamp_number(x, 0.0F, 4.0F);
  const F high = polynomial(inside, 0.128694341F, 0.634969532F, 0.106530838F, -0.024010025F,
                            0.00375744794F, -0.000350583141F, 1.39613903e-05F);
  const F tail = exp(-mul_add(inside, high, inside));
  return where(x > set(1.0F), copysign(set(1.0F) - tail, a), mul_add(a, low, a));
}

// ---- integers --------------------------------------------------------------------------------

template <class T>
HWY_INLINE Vec<T> operator~(Vec<T> a) {
  return {hn::Not(a.v)};
}
template <class T>
HWY_INLINE Mask isnan(Vec<T> a) {
  return a != a;
}
template <class T>
HWY_INLINE Mask isfinite(Vec<T> a) {
  return a == a;
}
template <class T>
HWY_INLINE Vec<T> floor(Vec<T> a) {
  return a;
}
template <class T>
HWY_INLINE Vec<T> ceil(Vec<T> a) {
  return a;
}
template <class T>
HWY_INLINE Vec<T> round(Vec<T> a) {
  return a;
}
template <class T>
HWY_INLINE Vec<T> trunc(Vec<T> a) {
  return a;
}
// By repeated squaring. For a negative exponent, the power is 1 or -1 if the base is 1 or -1,
// otherwise 0.
template <class T>
HWY_INLINE Vec<T> pow(Vec<T> a, Vec<T> b) {
  const Vec<T> one = set(T{1});
  const Mask nothing = b < set(T{0}) && a != one && a != -one;
  Vec<T> y = where(nothing, set(T{0}), one);
  U n = bits_as<std::uint32_t>(b);
  while (any(n != set(0U))) {
    y = where((n & set(1U)) != set(0U), y * a, y);
    a = a * a;
    n = shift_right<1>(n);
  }
  return y;
}

// ---- halves ----------------------------------------------------------------------------------

// Rounds to the nearest IEEE 754 binary16, ties to even. Returns an infinity if |a| >= 65520.
HWY_INLINE F round_to_f16(F a) {
  const U bits = bits_as<std::uint32_t>(a), magnitude = bits & set(0x7FFFFFFFU);
  const U odd = shift_right<13>(magnitude) & set(1U);
  const U normal = (magnitude + set(0x0FFFU) + odd) & set(0xFFFFE000U);
  // Floats near 0.5 have a spacing of 2^-24, the spacing of f16 below 2^-14.
  const U small = bits_as<std::uint32_t>((bits_as<float>(magnitude) + set(0.5F)) - set(0.5F));
  const U finite = where(magnitude < set(0x38800000U), small, normal);
  const U rounded = where(magnitude >= set(0x477FF000U), set(0x7F800000U), finite);
  return where(isnan(a), a, bits_as<float>(rounded | (bits & set(0x80000000U))));
}

}  // namespace tensorgrad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
