// SPDX-License-Identifier: MIT
// WGSL functions for the WGSL column of ops/pointwise.def. WGSL compilers may assume that no value
// is NaN or infinite. The functions therefore detect these by their bits, and make them from bits
// that are not constant. Polynomials and argument reductions are those of simd_math-inl.h and
// simd_trig-inl.h.
#include "kernel/pointwise.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

struct Helper {
  std::string_view name, text;
};

constexpr Helper kHelpers[] = {
    // ---- parts -----------------------------------------------------------------------------
    {"tg_isnan", R"(
fn tg_isnan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
)"},
    {"tg_isfinite", R"(
fn tg_isfinite(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}
)"},
    // Avoids bit masks: LLVM 15, which lavapipe uses, miscompiles them with AVX-512.
    {"tg_copysign", R"(
fn tg_copysign(magnitude: f32, sign: f32) -> f32 {
  return select(abs(magnitude), -abs(magnitude), bitcast<i32>(sign) < 0i);
}
)"},
    // Returns the float with these bits. `any` prevents constant evaluation by compilers.
    {"tg_special", R"(
fn tg_special(bits: u32, any: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(any) & 0u) | bits);
}
)"},

    // ---- arithmetic ------------------------------------------------------------------------
    // WGSL guarantees the accuracy of a quotient only for divisors up to 2^126. Beyond that, the
    // reciprocal is 0 on GPUs.
    {"tg_div", R"(
fn tg_div(a: f32, b: f32) -> f32 {
  let s = select(1.0f, 2.3283064e-10f, abs(b) > 8.5070592e37f);
  return (a * s) / (b * s);
}
)"},
    // Returns x times a zero with the bits `zero`. tg_div_zero() returns that zero divided by x.
    {"tg_mul_zero", R"(
fn tg_mul_zero(x: f32, zero: u32) -> f32 {
  let bits = bitcast<u32>(x);
  let nan = (bits & 0x7f800000u) == 0x7f800000u;
  return bitcast<f32>(select((bits ^ zero) & 0x80000000u, 0x7fc00000u, nan));
}
)"},
    {"tg_div_zero", R"(
fn tg_div_zero(x: f32, zero: u32) -> f32 {
  let bits = bitcast<u32>(x);
  let nan = x == 0.0f || tg_isnan(x);
  return bitcast<f32>(select((bits ^ zero) & 0x80000000u, 0x7fc00000u, nan));
}
)"},
    {"tg_div_i32", R"(
fn tg_div_i32(a: i32, b: i32) -> i32 {
  let odd = b == 0 || b == -1;
  return select(a / select(b, 1, odd), select(0 - a, 0, b == 0), odd);
}
)"},
    {"tg_div_u32", R"(
fn tg_div_u32(a: u32, b: u32) -> u32 {
  return select(a / max(b, 1u), 0u, b == 0u);
}
)"},
    // Avoids a % b, which is undefined in Vulkan if an operand is negative.
    {"tg_rem_i32", R"(
fn tg_rem_i32(a: i32, b: i32) -> i32 {
  let odd = b == 0 || b == -1;
  let d = select(b, 1, odd);
  return select(a - (a / d) * d, 0, odd);
}
)"},
    {"tg_rem_u32", R"(
fn tg_rem_u32(a: u32, b: u32) -> u32 {
  return select(a % max(b, 1u), 0u, b == 0u);
}
)"},
    // Returns x mod d for x, d > 0 and x / d < 2^128. Each round reduces the quotient by 11 bits.
    // Factors have 12 bits, so that products and differences are exact. If a quotient was rounded
    // up, the remainder is small and negative; the loop continues with the opposite sign.
    {"tg_rem_step", R"(
fn tg_rem_step(x: f32, d: f32) -> f32 {
  let high = bitcast<f32>(bitcast<u32>(d) & 0xfffff000u);
  var r = x;
  var negative = false;
  for (var round = 0; round < 14 && r >= d; round++) {
    let q = bitcast<f32>(bitcast<u32>(trunc(tg_div(r, d))) & 0xfffff000u);
    r = select((r - q * high) - q * (d - high), r - d, q == 1.0f);
    negative = negative != (r < 0.0f);
    r = abs(r);
  }
  return select(r, d - r, negative && r != 0.0f);
}
)"},
    // Returns d 2^64, computed by the exponent. Compilers would merge two factors into one, which
    // overflows.
    {"tg_rem_above", R"(
fn tg_rem_above(d: f32) -> f32 {
  let bits = bitcast<u32>(d);
  return bitcast<f32>(select(bits + 0x20000000u, 0x7f800000u, bits >= 0x5f800000u));
}
)"},
    // Reduces modulo d 2^128, d 2^64 and d, so that no quotient overflows. If d is small, the last
    // step is scaled by 2^64, as the low bits of d would be denormal.
    {"tg_rem_f32", R"(
fn tg_rem_f32(a: f32, b: f32) -> f32 {
  let x = abs(a);
  let d = abs(b);
  let big = tg_rem_above(d);
  let far = tg_rem_step(tg_rem_step(x, tg_rem_above(big)), big);
  let up = select(1.0f, 18446744073709551616.0f, d < 8.6736174e-19f);
  let down = select(1.0f, 5.4210109e-20f, d < 8.6736174e-19f);
  let r = tg_rem_step(far * up, select(d, big, d < 8.6736174e-19f)) * down;
  let undefined = tg_isnan(a) || tg_isnan(b) || d == 0.0f || bitcast<u32>(x) == 0x7f800000u;
  return select(tg_copysign(r, a), tg_special(0x7fc00000u, a), undefined);
}
)"},
    {"tg_relu", R"(
fn tg_relu(x: f32) -> f32 {
  return select(max(x, 0.0f), x, tg_isnan(x));
}
)"},
    {"tg_minimum", R"(
fn tg_minimum(a: f32, b: f32) -> f32 {
  return select(select(b, a, a < b || tg_isnan(a)), b, tg_isnan(b));
}
)"},
    {"tg_maximum", R"(
fn tg_maximum(a: f32, b: f32) -> f32 {
  return select(select(b, a, a > b || tg_isnan(a)), b, tg_isnan(b));
}
)"},

    // The sum of x and 1.5 2^13 times the power of two of x (at least 2^-14) has exactly the bits
    // that f16 keeps. Compilers would simplify (x + y) - y to x; doubling the sum through its bits
    // prevents that.
    {"tg_round_to_f16", R"(
fn tg_round_to_f16(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let size = bits & 0x7fffffffu;
  let large = bitcast<f32>(max(bits & 0x7f800000u, 0x38800000u) + 0x06c00000u);
  let doubled = bitcast<f32>(bitcast<u32>(bitcast<f32>(size) + large) + 0x00800000u);
  let near = bitcast<u32>(fma(doubled, 0.5f, -large));
  let rounded = select(near, max(size, 0x7f800000u), size >= 0x477ff000u);
  return bitcast<f32>(rounded | (bits & 0x80000000u));
}
)"},

    // ---- exponentials ----------------------------------------------------------------------
    // Returns the integer nearest to x for |x| <= 2^21. It is in the low bits of x + 1.5 2^23. GPUs
    // add faster than they round and convert.
    {"tg_whole", R"(
fn tg_whole(x: f32) -> i32 {
  return bitcast<i32>(x + 12582912.0f) - 0x4b400000i;
}
)"},
    // Returns n as a float for |n| <= 2^21, from the bits of 1.5 2^24 + 2 n.
    {"tg_whole_f32", R"(
fn tg_whole_f32(n: i32) -> f32 {
  return fma(bitcast<f32>(n + 0x4bc00000i), 0.5f, -12582912.0f);
}
)"},
    // Returns a 2^n for |n| <= 252.
    {"tg_scale", R"(
fn tg_scale(a: f32, n: i32) -> f32 {
  let half = n >> 1u;
  return a * bitcast<f32>((half + 127) << 23u) * bitcast<f32>((n - half + 127) << 23u);
}
)"},
    // Returns e^r - 1 for |r| <= ln 2 / 2.
    {"tg_expm1_reduced", R"(
fn tg_expm1_reduced(r: f32) -> f32 {
  var p = fma(0.000199442715f, r, 0.0013932708f);
  p = fma(p, r, 0.00833320804f);
  p = fma(p, r, 0.0416664891f);
  p = fma(p, r, 0.166666672f);
  p = fma(p, r, 0.5f);
  return fma(r * r, p, r);
}
)"},
    // The built-in exp loses as many bits as its argument has before the binary point. Scales by
    // 2^(n-1), which is a float even for n = 128. If it is too small for a float, the result is
    // below 2^-125.5 and is set to zero, whatever `whole` is. NaN and infinity propagate through r.
    {"tg_exp", R"(
fn tg_exp(x: f32) -> f32 {
  let whole = tg_whole(min(x, 89.0f) * 1.44269504f);
  let n = tg_whole_f32(whole);
  let r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  let twice = fma(tg_expm1_reduced(r), 2.0f, 2.0f);
  return select(twice * bitcast<f32>((whole + 126) << 23u), 0.0f, x < -86.98f);
}
)"},
    // For results that are rounded to f16: e^x is within its range only for |x| < 18.
    {"tg_exp_to_f16", R"(
fn tg_exp_to_f16(x: f32) -> f32 {
  return select(exp(x), x, tg_isnan(x));
}
)"},
    {"tg_exp2", R"(
fn tg_exp2(x: f32) -> f32 {
  let inside = clamp(x, -151.0f, 129.0f);
  let whole = tg_whole(inside);
  let y = 1.0f + tg_expm1_reduced((inside - tg_whole_f32(whole)) * 0.693147182f);
  return select(tg_scale(y, whole), x, tg_isnan(x));
}
)"},
    // Computed from half of the result, as 2^128 is not a float.
    {"tg_expm1", R"(
fn tg_expm1(x: f32) -> f32 {
  let inside = clamp(x, -25.0f, 89.0f);
  let whole = tg_whole(inside * 1.44269504f);
  let n = tg_whole_f32(whole);
  let tail = tg_expm1_reduced((inside - n * 0.693359375f) + n * 2.12194440e-4f);
  let s = bitcast<f32>((whole + 126) << 23u);
  let y = select(2.0f * fma(s, tail, s - 0.5f), tail, whole == 0);
  return select(y, x, tg_isnan(x) || x == 0.0f);
}
)"},
    {"tg_tanh", R"(
fn tg_tanh(x: f32) -> f32 {
  let t = tg_expm1(2.0f * min(abs(x), 10.0f));
  return select(tg_copysign(t / (t + 2.0f), x), x, tg_isnan(x));
}
)"},
    {"tg_sigmoid", R"(
fn tg_sigmoid(x: f32) -> f32 {
  let e = tg_exp(-abs(x));
  return select(1.0f, e, x < 0.0f) / (1.0f + e);
}
)"},
    {"tg_softplus", R"(
fn tg_softplus(x: f32) -> f32 {
  return select(0.0f, x, x > 0.0f) + tg_log1p(tg_exp(-abs(x)));
}
)"},

    // ---- logarithms ------------------------------------------------------------------------
    // Returns (f, k) with x = 2^k (1 + f) and 1 + f in [sqrt(1/2), sqrt(2)). A denormal may be
    // flushed to zero as a float, but its bits count multiples of 2^-149.
    {"tg_split", R"(
fn tg_split(x: f32) -> vec2<f32> {
  let given = bitcast<i32>(x);
  let denormal = given < 0x00800000i;
  let bits = select(given, bitcast<i32>(f32(given)), denormal);
  let k = (bits - 0x3f3504f3i) >> 23u;
  return vec2<f32>(bitcast<f32>(bits - (k << 23u)) - 1.0f, f32(k) - select(0.0f, 149.0f, denormal));
}
)"},
    // Returns log(1 + f) - f.
    {"tg_log_tail", R"(
fn tg_log_tail(f: f32) -> f32 {
  var p = fma(0.0691561252f, f, -0.117893703f);
  p = fma(p, f, 0.118726194f);
  p = fma(p, f, -0.12384402f);
  p = fma(p, f, 0.142187163f);
  p = fma(p, f, -0.166692495f);
  p = fma(p, f, 0.200022236f);
  p = fma(p, f, -0.249999866f);
  p = fma(p, f, 0.333333105f);
  return f * f * fma(f, p, -0.5f);
}
)"},
    // Returns log x for every x, given y = log x, which is valid for 0 < x < infinity.
    {"tg_log_edges", R"(
fn tg_log_edges(x: f32, y: f32) -> f32 {
  let bits = bitcast<u32>(x);
  var r = select(y, tg_special(0x7fc00000u, x), bits > 0x80000000u);
  r = select(r, tg_special(0xff800000u, x), (bits & 0x7fffffffu) == 0u);
  return select(r, x, tg_isnan(x) || bits == 0x7f800000u);
}
)"},
    {"tg_log", R"(
fn tg_log(x: f32) -> f32 {
  let s = tg_split(x);
  let low = fma(s.y, -2.12194440e-4f, tg_log_tail(s.x));
  return tg_log_edges(x, fma(s.y, 0.693359375f, s.x + low));
}
)"},
    {"tg_log2", R"(
fn tg_log2(x: f32) -> f32 {
  let s = tg_split(x);
  let tail = tg_log_tail(s.x);
  let small = fma(s.x, 0.442695041f, fma(tail, 0.442695041f, tail)) + s.x;
  return tg_log_edges(x, s.y + small);
}
)"},
    // Near 0, with s = x / (2 + x): log(1 + x) = 2 s + s^3 p(s^2).
    {"tg_log1p", R"(
fn tg_log1p(x: f32) -> f32 {
  let s = x / (2.0f + x);
  let s2 = s * s;
  var p = fma(0.252435476f, s2, 0.284085333f);
  p = fma(p, s2, 0.40003404f);
  p = fma(p, s2, 0.666666448f);
  return select(tg_log(1.0f + x), fma(s * s2, p, s + s), x > -0.4f && x < 0.66f);
}
)"},

    // ---- hyperbolic functions: see simd_math-inl.h ----------------------------------------
    {"tg_sinh", R"(
fn tg_sinh(a: f32) -> f32 {
  let x = abs(a);
  let e = tg_expm1(min(x, 21.0f));
  let root = tg_exp(0.5f * x);
  let y = select(0.5f * (e + e / (e + 1.0f)), 0.5f * root * root, x > 20.0f);
  return select(tg_copysign(y, a), a, tg_isnan(a));
}
)"},
    {"tg_asinh", R"(
fn tg_asinh(a: f32) -> f32 {
  let x = min(abs(a), 2.0e4f);
  let near = tg_log1p(x + x * x / (1.0f + sqrt(x * x + 1.0f)));
  let y = select(near, tg_log(abs(a)) + 0.693147182f, abs(a) > 1.0e4f);
  return select(tg_copysign(y, a), a, tg_isnan(a));
}
)"},
    {"tg_acosh", R"(
fn tg_acosh(a: f32) -> f32 {
  let more = clamp(a - 1.0f, 0.0f, 2.0e4f);
  let near = tg_log1p(more + sqrt(more * (more + 2.0f)));
  let y = select(near, tg_log(a) + 0.693147182f, a > 1.0e4f);
  return select(y, tg_special(0x7fc00000u, a), a < 1.0f || tg_isnan(a));
}
)"},
    {"tg_atanh", R"(
fn tg_atanh(a: f32) -> f32 {
  let x = abs(a);
  let y = tg_copysign(0.5f * tg_log1p(2.0f * x / (1.0f - x)), a);
  let outside = select(y, tg_special(0x7f800000u, a), x == 1.0f);
  let edge = select(outside, tg_special(0xff800000u, a), a == -1.0f);
  return select(edge, tg_special(0x7fc00000u, a), x > 1.0f || tg_isnan(a));
}
)"},

    // ---- pow -------------------------------------------------------------------------------
    // b (k + log2(1 + f)) = n + rest. b k is exact in two parts, so that only b log2(1 + f) is
    // rounded.
    {"tg_pow", R"(
fn tg_pow(a: f32, b: f32) -> f32 {
  let x = abs(a);
  let s = tg_split(x);
  let log2_f = tg_log2(1.0f + s.x);
  let high = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
  let low = fma(b, log2_f, (b - high) * s.y);
  let n = round(high * s.y + low);
  let rest = (high * s.y - n) + low;
  let inside = clamp(n, -160.0f, 160.0f);
  var y = tg_scale(1.0f + tg_expm1_reduced(rest * 0.693147182f), i32(inside));

  let e = abs(b);
  let infinite = bitcast<u32>(x) == 0x7f800000u;
  let whole = round(e) == e;
  let odd = whole && round(e * 0.5f) != e * 0.5f;
  let limit = tg_special(select(0u, 0x7f800000u, (x > 1.0f) == (b > 0.0f)), a);
  let nothing = bitcast<u32>(x) == 0u;
  y = select(y, limit, nothing || infinite || abs(inside) == 160.0f || e > 1.0e30f);
  y = select(y, -y, odd && bitcast<i32>(a) < 0);
  let undefined = bitcast<i32>(a) < 0 && !nothing && !infinite && !whole;
  y = select(y, tg_special(0x7fc00000u, a), undefined || tg_isnan(a) || tg_isnan(b));
  return select(y, 1.0f, b == 0.0f || a == 1.0f || (x == 1.0f && e > 1.0e30f));
}
)"},

    // By repeated squaring, modulo 2^32.
    {"tg_pow_u32", R"(
fn tg_pow_u32(a: u32, b: u32) -> u32 {
  var y = 1u;
  var x = a;
  for (var n = b; n != 0u; n = n >> 1u) {
    y = select(y, y * x, (n & 1u) != 0u);
    x = x * x;
  }
  return y;
}
)"},
    // For a negative exponent, the power is 1 or -1 if the base is 1 or -1, otherwise 0.
    {"tg_pow_i32", R"(
fn tg_pow_i32(a: i32, b: i32) -> i32 {
  let y = bitcast<i32>(tg_pow_u32(bitcast<u32>(a), bitcast<u32>(b)));
  return select(y, 0i, b < 0i && a != 1i && a != -1i);
}
)"},

    // ---- circular functions ----------------------------------------------------------------
    // Returns words i to i + 3 of 2/pi, preceded by a word of zeros.
    {"tg_two_over_pi", R"(
fn tg_two_over_pi(i: u32) -> vec4<u32> {
  switch (i) {
    case 0u { return vec4<u32>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u); }
    case 1u { return vec4<u32>(0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u); }
    case 2u { return vec4<u32>(0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u); }
    case 3u { return vec4<u32>(0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u); }
    default { return vec4<u32>(0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu); }
  }
}
)"},
    // Returns (q mod 4, r) with x = q pi/2 + r for x >= 2^16, by the method of Payne and Hanek
    // (1983). Let x = m 2^e with an integer m. Of the bits of 2/pi, only those matter for which the
    // product is less than 4: 96 bits from bit e - 2 on. The upper two bits of their product with m
    // are q. The rest is a fraction of 94 bits, of which the first 30 may all be 0 or all be 1.
    {"tg_far_angle", R"(
fn tg_far_angle(x: f32) -> vec2<f32> {
  let bits = bitcast<u32>(x);
  let m = (bits & 0x007fffffu) | 0x00800000u;
  let first = ((bits >> 23u) & 0xffu) - 120u;
  let words = tg_two_over_pi(first >> 5u);
  let shift = first & 31u;
  let w0 = (words.x << shift) | ((words.y >> 1u) >> (31u - shift));
  let w1 = (words.y << shift) | ((words.z >> 1u) >> (31u - shift));
  let w2 = (words.z << shift) | ((words.w >> 1u) >> (31u - shift));
  let p2 = m * w2;
  let low = m * w1;
  let p1 = low + tg_mul_high(m, w2);
  let p0 = m * w0 + tg_mul_high(m, w1) + select(0u, 1u, p1 < low);
  let high = (p0 << 2u) | (p1 >> 30u);
  let rest = (p1 << 2u) | (p2 >> 30u);
  let up = high >> 31u;
  let h = select(high, ~high, up != 0u);
  let l = select(rest, ~rest, up != 0u);
  let zeros = min(countLeadingZeros(h), 31u);
  let fraction = (h << zeros) | ((l >> 1u) >> (31u - zeros));
  let r = f32(fraction) * bitcast<f32>((95u - zeros) << 23u) * 1.57079637f;
  return vec2<f32>(f32(((p0 >> 30u) + up) & 3u), select(r, -r, up != 0u));
}
)"},
    // Returns (sin r, cos r, q) with |x| = q pi/2 + r; for large |x|, q is modulo 4. Below 65536, q
    // has 16 bits and the first three parts of pi/2 have 8, so that their products are exact.
    {"tg_angle", R"(
fn tg_angle(x: f32) -> vec3<f32> {
  var q = round(abs(x) * 0.636619747f);
  var r = abs(x) - q * 1.5703125f;
  r = r - q * 0.000482559204f;
  r = r - q * 1.2665987e-06f;
  r = clamp(r - q * 9.92093629e-10f, -0.8f, 0.8f);
  if (abs(x) >= 65536.0f) {
    let far = tg_far_angle(abs(x));
    q = far.x;
    r = far.y;
  }
  r = select(r, tg_special(0x7fc00000u, x), (bitcast<u32>(x) & 0x7f800000u) == 0x7f800000u);
  let r2 = r * r;
  let s = fma(fma(-0.000195068365f, r2, 0.00833210163f), r2, -0.166666538f);
  let c = fma(fma(fma(2.44306702e-05f, r2, -0.00138873013f), r2, 0.0416666456f), r2, -0.5f);
  return vec3<f32>(fma(r * r2, s, r), fma(r2, c, 1.0f), q);
}
)"},
    {"tg_sin", R"(
fn tg_sin(x: f32) -> f32 {
  let t = tg_angle(x);
  let q = u32(t.z);
  let y = select(t.x, t.y, (q & 1u) != 0u);
  return select(y, -y, ((q & 2u) != 0u) != (bitcast<i32>(x) < 0));
}
)"},
    {"tg_cos", R"(
fn tg_cos(x: f32) -> f32 {
  let t = tg_angle(x);
  let q = u32(t.z);
  let y = select(t.y, t.x, (q & 1u) != 0u);
  return select(y, -y, ((q + 1u) & 2u) != 0u);
}
)"},
    {"tg_tan", R"(
fn tg_tan(x: f32) -> f32 {
  let t = tg_angle(x);
  let odd = (u32(t.z) & 1u) != 0u;
  let y = select(t.x, t.y, odd) / select(t.y, -t.x, odd);
  return select(y, -y, bitcast<i32>(x) < 0);
}
)"},
    {"tg_atan2", R"(
fn tg_atan2(y: f32, x: f32) -> f32 {
  let steep = abs(y) > abs(x);
  let small = select(abs(y), abs(x), steep);
  let large = select(abs(x), abs(y), steep);
  var t = tg_div(small, select(large, 1.0f, large == 0.0f));
  t = select(t, 1.0f, bitcast<u32>(small) == 0x7f800000u);
  let t2 = t * t;
  var p = fma(-0.0017827797f, t2, 0.0108685717f);
  p = fma(p, t2, -0.0310968719f);
  p = fma(p, t2, 0.0578813404f);
  p = fma(p, t2, -0.0839930549f);
  p = fma(p, t2, 0.109508805f);
  p = fma(p, t2, -0.142640159f);
  p = fma(p, t2, 0.199985296f);
  p = fma(p, t2, -0.333332986f);
  var angle = fma(t * t2, p, t);
  angle = select(angle, 1.57079637f - angle, steep);
  angle = select(angle, 3.14159274f - angle, bitcast<i32>(x) < 0);
  let nan = tg_special(0x7fc00000u, x);
  return select(tg_copysign(angle, y), nan, tg_isnan(x) || tg_isnan(y));
}
)"},

    // ---- others ----------------------------------------------------------------------------
    // Above 1, the built-in exp suffices: its error is small compared to 1 - e^-x.
    {"tg_erf", R"(
fn tg_erf(a: f32) -> f32 {
  let x = min(abs(a), 4.0f);
  let x2 = a * a;
  var low = fma(7.80690389e-05f, x2, -0.00079978531f);
  low = fma(low, x2, 0.0051871622f);
  low = fma(low, x2, -0.0268533472f);
  low = fma(low, x2, 0.112835787f);
  low = fma(low, x2, -0.37612626f);
  low = fma(low, x2, 0.128379166f);
  var high = fma(1.39613903e-05f, x, -0.000350583141f);
  high = fma(high, x, 0.00375744794f);
  high = fma(high, x, -0.024010025f);
  high = fma(high, x, 0.106530838f);
  high = fma(high, x, 0.634969532f);
  high = fma(high, x, 0.128694341f);
  let y = select(fma(a, low, a), tg_copysign(1.0f - exp(-fma(x, high, x)), a), x > 1.0f);
  return select(y, a, tg_isnan(a));
}
)"},
    {"tg_to_f32", R"(
fn tg_to_f32(x: f32) -> f32 {
  return x;
}
)"},
    {"tg_to_bool", R"(
fn tg_to_bool(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) != 0u;
}
)"},
    // The bounds are the largest floats below 2^31 and 2^32.
    {"tg_to_i32", R"(
fn tg_to_i32(x: f32) -> i32 {
  let r = i32(clamp(x, -2147483648.0f, 2147483520.0f));
  return select(select(r, 2147483647i, x >= 2147483648.0f), 0i, tg_isnan(x));
}
)"},
    {"tg_to_u32", R"(
fn tg_to_u32(x: f32) -> u32 {
  let r = u32(clamp(x, 0.0f, 4294967040.0f));
  return select(select(r, 4294967295u, x >= 4294967296.0f), 0u, tg_isnan(x));
}
)"},
    // Returns the upper half of the 64-bit product, computed from 16-bit halves.
    {"tg_mul_high", R"(
fn tg_mul_high(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let mid = ah * bl + ((al * bl) >> 16u);
  let mid2 = al * bh + (mid & 0xffffu);
  return ah * bh + (mid >> 16u) + (mid2 >> 16u);
}
)"},
    // Philox4x32-10; see philox.inc
    {"tg_philox", R"(
fn tg_philox(index: u32, stream: u32, seed: u32, step: u32) -> u32 {
  var c = vec4<u32>(index >> 2u, step, 0u, 0u);
  var k = vec2<u32>(seed, stream);
  for (var round = 0; round < 10; round++) {
    c = vec4<u32>(tg_mul_high(0xcd9e8d57u, c.z) ^ c.y ^ k.x, 0xcd9e8d57u * c.z,
                  tg_mul_high(0xd2511f53u, c.x) ^ c.w ^ k.y, 0xd2511f53u * c.x);
    k = k + vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
  }
  return select(select(c.x, c.y, (index & 1u) != 0u), select(c.z, c.w, (index & 1u) != 0u),
                (index & 2u) != 0u);
}
)"},
};

}  // namespace

std::string_view wgsl_helper(std::string_view name) {
  for (const Helper& helper : kHelpers) {
    if (helper.name == name) return helper.text;
  }
  return {};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
