// SPDX-License-Identifier: MIT
// The functions of scalar_math.h for float vectors, continued: circular functions, pow and the
// float remainder. Huge angles and quotients, which the fast paths do not support, go lane by lane
// through the C library.
#if defined(TENSORGRAD_KERNEL_SIMD_TRIG_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORGRAD_KERNEL_SIMD_TRIG_INL_H
#undef TENSORGRAD_KERNEL_SIMD_TRIG_INL_H
#else
#define TENSORGRAD_KERNEL_SIMD_TRIG_INL_H
#endif

#include <cmath>

#include "kernel/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::HWY_NAMESPACE {

// Returns c - a * b with an exact product: by FMA, or by halves of 12 bits (Dekker). Without FMA it
// requires |a b| > 2^-90 or a b = 0, and |a|, |b| < 2^115.
HWY_INLINE F exact_neg_mul_add(F a, F b, F c) {
#if HWY_NATIVE_FMA
  return neg_mul_add(a, b, c);
#else
  const F factor = set(4097.0F);
  const F a_big = a * factor, b_big = b * factor;
  const F a_high = a_big - (a_big - a), b_high = b_big - (b_big - b);
  const F a_low = a - a_high, b_low = b - b_high;
  const F p = a * b;
  const F error = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low;
  return (c - p) - error;
#endif
}

// ---- sine and cosine -------------------------------------------------------------------------

// |a| = q pi/2 + r with |r| slightly above pi/4 at most, for |a| < kHugeAngle; sin r and cos r.
struct Angle {
  F sin_r, cos_r;
  I q;
};
inline constexpr float kHugeAngle = 1048576.0F;

HWY_INLINE Angle reduce_angle(F a) {
  const F x = clamp_number(abs(a), 0.0F, kHugeAngle);
  const NearestInteger q = nearest_integer(x * set(0.636619747F));
  // pi/2 in three parts; q has at most 20 bits, each part 24.
  F r = exact_neg_mul_add(q.number, set(1.57079637F), x);
  r = exact_neg_mul_add(q.number, set(-4.37113883e-8F), r);
  r = neg_mul_add(q.number, set(-1.71512451e-15F), r);
  const F r2 = r * r;
  const F s = polynomial(r2, -0.166666538F, 0.00833210163F, -0.000195068365F);
  const F c = polynomial(r2, -0.5F, 0.0416666456F, -0.00138873013F, 2.44306702e-05F);
  return {mul_add(r * r2, s, r), mul_add(r2, c, set(1.0F)), q.integer};
}

HWY_INLINE Mask bit(I a, std::int32_t which) { return (a & set(which)) != set(std::int32_t{0}); }

template <class Fn>
HWY_INLINE F fix_huge_angles(Fn exact, F a, F y) {
  const Mask huge = !(abs(a) < set(kHugeAngle));
  return HWY_UNLIKELY(any(huge)) ? where(huge, by_lanes(exact, a, a), y) : y;
}

HWY_INLINE F sin(F a) {
  const Angle t = reduce_angle(a);
  const F magnitude = where(bit(t.q, 1), t.cos_r, t.sin_r);
  const F flip = where(bit(t.q, 2), set(-0.0F), set(0.0F)) ^ (a & set(-0.0F));
  const auto exact = [](float x, float) { return static_cast<float>(std::sin(double{x})); };
  return fix_huge_angles(exact, a, magnitude ^ flip);
}

HWY_INLINE F cos(F a) {
  const Angle t = reduce_angle(a);
  const F magnitude = where(bit(t.q, 1), t.sin_r, t.cos_r);
  const F flip = where(bit(t.q + set(std::int32_t{1}), 2), set(-0.0F), set(0.0F));
  const auto exact = [](float x, float) { return static_cast<float>(std::cos(double{x})); };
  return fix_huge_angles(exact, a, magnitude ^ flip);
}

HWY_INLINE F tan(F a) {
  const Angle t = reduce_angle(a);
  const Mask odd = bit(t.q, 1);
  const F ratio = where(odd, t.cos_r, t.sin_r) / where(odd, -t.sin_r, t.cos_r);
  const auto exact = [](float x, float) { return static_cast<float>(std::tan(double{x})); };
  return fix_huge_angles(exact, a, ratio ^ (a & set(-0.0F)));
}

// The angle of the point (x, y): atan of the smaller over the larger coordinate, then mapped to its
// octant.
HWY_INLINE F atan2(F y, F x) {
  const F ax = abs(x), ay = abs(y);
  const Mask steep = ay > ax;
  const F small = where(steep, ax, ay), large = where(steep, ay, ax);
  // Here 0/0 is 0 and inf/inf is 1.
  const F ratio = small / where(large == set(0.0F), set(1.0F), large);
  const F t = where(small == set(kInfinity), set(1.0F), ratio);
  const F t2 = t * t;
  const F p =
      polynomial(t2, -0.333332986F, 0.199985296F, -0.142640159F, 0.109508805F, -0.0839930549F,
                 0.0578813404F, -0.0310968719F, 0.0108685717F, -0.0017827797F);
  F angle = mul_add(t * t2, p, t);
  angle = where(steep, (set(1.57079637F) - angle) + set(-4.37113883e-8F), angle);
  const Mask left = bits_as<std::int32_t>(x) < set(std::int32_t{0});
  angle = where(left, (set(3.14159274F) - angle) + set(-8.74227766e-8F), angle);
  return where(isnan(x) || isnan(y), x + y, copysign(angle, y));
}

// ---- pow -------------------------------------------------------------------------------------

#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_SCALAR
// Returns 2^(y (k + log2(1 + f))), computed in double, for half a vector.
template <class VF>
HWY_INLINE auto pow_half(VF f, VF k, VF y) {
  const hn::Half<Tag<float>> df;
  const hn::Rebind<double, decltype(df)> d;
  const hn::Rebind<std::int64_t, decltype(df)> di;
  const auto wide = [d](VF v) { return hn::PromoteTo(d, v); };
  const auto c = [d](double v) { return hn::Set(d, v); };
  const auto fd = wide(f);
  // log2(1 + f) = s p(s^2) with s = f / (2 + f)
  const auto s = hn::Div(fd, hn::Add(fd, c(2.0)));
  const auto s2 = hn::Mul(s, s);
  auto p = hn::MulAdd(s2, c(0.28290765477069985), c(0.31990517369287691));
  p = hn::MulAdd(s2, p, c(0.41220926493727328));
  p = hn::MulAdd(s2, p, c(0.57707794224618847));
  p = hn::MulAdd(s2, p, c(0.96179669411368895));
  p = hn::MulAdd(s2, p, c(2.8853900817778504));
  const auto log2 = hn::MulAdd(s, p, wide(k));
  // Beyond these bounds the float result is 0 or infinity.
  const auto e = hn::Min(hn::Max(hn::Mul(wide(y), log2), c(-160.0)), c(160.0));
  const auto magic = c(6755399441055744.0);  // 1.5 * 2^52
  const auto shifted = hn::Add(e, magic);
  const auto r = hn::Sub(e, hn::Sub(shifted, magic));
  auto q = hn::MulAdd(r, c(1.5201920384399495e-05), c(0.00015469291125217447));
  q = hn::MulAdd(r, q, c(0.0013333922568561679));
  q = hn::MulAdd(r, q, c(0.0096180272537254759));
  q = hn::MulAdd(r, q, c(0.055504103534417697));
  q = hn::MulAdd(r, q, c(0.24022651198156991));
  q = hn::MulAdd(r, q, c(0.69314718072844894));
  q = hn::MulAdd(r, q, c(0.99999999996168221));
  const auto exponent = hn::ShiftLeft<52>(hn::BitCast(di, shifted));
  return hn::DemoteTo(df, hn::BitCast(d, hn::Add(hn::BitCast(di, q), exponent)));
}

// Returns |a|^b for 0 < |a| < infinity and finite b.
HWY_INLINE F pow_magnitude(F a, F b) {
  const SplitFloat s = split(abs(a));
  const F k = convert(s.k, To<F>());
  const hn::Half<Tag<float>> half;
  const auto low =
      pow_half(hn::LowerHalf(half, s.f.v), hn::LowerHalf(half, k.v), hn::LowerHalf(half, b.v));
  const auto high =
      pow_half(hn::UpperHalf(half, s.f.v), hn::UpperHalf(half, k.v), hn::UpperHalf(half, b.v));
  return {hn::Combine(Tag<float>(), high, low)};
}
#else
HWY_INLINE F pow_magnitude(F a, F b) {
  const auto exact = [](float x, float y) {
    return static_cast<float>(std::pow(std::fabs(double{x}), double{y}));
  };
  return by_lanes(exact, a, b);
}
#endif

// As pow in C and PyTorch. The parity of b determines the sign; special cases follow one by one.
HWY_INLINE F pow(F a, F b) {
  const F zero = set(0.0F), one = set(1.0F), infinity = set(kInfinity);
  const F x = abs(a), e = abs(b);
  // Every float >= 2^24 is an even integer.
  const F half = e * set(0.5F);
  const Mask integer = round(e) == e, odd = integer && round(half) != half;
  const Mask negative = bits_as<std::int32_t>(a) < set(std::int32_t{0});

  F y = pow_magnitude(a, b);
  // |a|^inf, inf^b and 0^b are infinity if true, else 0.
  const Mask grows = (x > one) == (b > zero);
  const Mask extreme = is_zero(x) || x == infinity || e == infinity;
  y = where(extreme, where(grows, infinity, zero), y);
  y = y ^ where(negative && odd, set(-0.0F), zero);
  const F nan = set(std::numeric_limits<float>::quiet_NaN());
  const Mask undefined = negative && !is_zero(a) && x < infinity && !integer && e < infinity;
  y = where(undefined || isnan(a) || isnan(b), nan, y);
  const Mask is_one = b == zero || a == one || (x == one && e == infinity);
  return where(is_one, one, y);
}

// ---- remainder -------------------------------------------------------------------------------

// a - b trunc(a / b), exactly, as fmod in C. If the quotient is rounded up by one, r is negative
// and adding |b| corrects it.
HWY_INLINE F operator%(F a, F b) {
  const F x = abs(a), d = abs(b);
  const F q = trunc(x / d);
  const F r = exact_neg_mul_add(q, d, x);
  const F y = copysign(where(r < set(0.0F), r + d, r), a);
  const Mask easy = q < set(8388608.0F) && d > set(1e-18F) && maximum(x, d) < set(1e30F);
  if (HWY_LIKELY(!any(!easy))) return y;
  return where(easy, y, by_lanes([](float p, float s) { return std::fmod(p, s); }, a, b));
}
template <class T>
HWY_INLINE Vec<T> operator%(Vec<T> a, Vec<T> b) {
  using scalar_math::Scalar;
  return by_lanes([](T x, T y) { return (Scalar<T>{x} % Scalar<T>{y}).v; }, a, b);
}

}  // namespace tensorgrad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
