// SPDX-License-Identifier: MIT
// Pointwise ops: each element of the result depends on the elements of the operands at the same
// index. Shapes broadcast as in NumPy, aligned at the last axis. Operands and results are f32
// unless a function says otherwise. Ops throw ShapeError if shapes do not broadcast, and DtypeError
// if the types of operands are not supported or differ.
#pragma once

#include <limits>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns a + b. Supports f32, i32 and u32; integers wrap.
Tensor add(Operand a, Operand b);

/// Returns a - b. Supports f32, i32 and u32; integers wrap.
Tensor sub(Operand a, Operand b);

/// Returns a * b. Supports f32, i32 and u32; integers wrap.
Tensor mul(Operand a, Operand b);

/// Returns a / b. Supports f32, i32 and u32. Integer quotients are truncated toward zero, and
/// integer x / 0 is 0.
Tensor div(Operand a, Operand b);

/// Returns a - b * trunc(a / b), which has the sign of `a` (C's `fmod`). Supports f32, i32 and u32;
/// for integers, fmod(x, 0) is 0.
Tensor fmod(Operand a, Operand b);

/// Returns the smaller operand, or NaN if one of them is NaN. In a tie, each operand gets half of
/// the gradient. Supports f32, i32, u32, and bool (like logical_and()).
Tensor minimum(Operand a, Operand b);

/// Returns the larger operand, or NaN if one of them is NaN. In a tie, each operand gets half of
/// the gradient. Supports f32, i32, u32, and bool (like logical_or()).
Tensor maximum(Operand a, Operand b);

/// Returns `a` to the power of `b`. Supports f32, i32 and u32; integers wrap. An integer to a
/// negative power is 0, except for the bases 1 and -1. The gradient with respect to `a` is 0 if
/// `b = 0`. The gradient with respect to `b` is 0 if `a = 0` and `b >= 0`.
Tensor pow(Operand a, Operand b);

/// Returns the angle of the point (b, a) in radians, in [-pi, pi]. The gradient at (0, 0) is 0.
Tensor atan2(Operand a, Operand b);

/// Returns -x. Supports f32, i32 and u32; integers wrap.
Tensor neg(Operand x);

/// Returns |x|. The gradient at 0 is 0. Supports f32, i32 and u32.
Tensor abs(Operand x);

/// Returns the sign of `x`: -1, 0 or 1, and 0 for NaN. The gradient is 0. Supports f32, i32 and
/// u32.
Tensor sign(Operand x);

/// Returns the largest integer not above `x`. The gradient is 0. Integers are returned unchanged.
Tensor floor(Operand x);

/// Returns the smallest integer not below `x`. The gradient is 0. Integers are returned unchanged.
Tensor ceil(Operand x);

/// Returns the nearest integer, with ties to even. The gradient is 0. Integers are returned
/// unchanged.
Tensor round(Operand x);

/// Returns `x` rounded toward zero. The gradient is 0. Integers are returned unchanged.
Tensor trunc(Operand x);

/// Returns the nearest f16 number as f32, with ties to even. Magnitudes from 65520 on become
/// infinite. Not differentiable; use `cast(cast(x, f16), f32)` if the gradient must pass.
Tensor round_to_f16(Operand x);

/// Returns e^x.
Tensor exp(Operand x);

/// Returns 2^x.
Tensor exp2(Operand x);

/// Returns e^x - 1, accurate near 0.
Tensor expm1(Operand x);

/// Returns the natural logarithm of `x`.
Tensor log(Operand x);

/// Returns the base-2 logarithm of `x`.
Tensor log2(Operand x);

/// Returns log(1 + x), accurate near 0.
Tensor log1p(Operand x);

/// Returns the square root of `x`.
Tensor sqrt(Operand x);

/// Returns 1 / sqrt(x).
Tensor rsqrt(Operand x);

/// Returns 1 / x.
Tensor reciprocal(Operand x);

/// Returns x * x. Supports f32, i32 and u32; integers wrap.
Tensor square(Operand x);

/// Returns the sine of `x` in radians.
Tensor sin(Operand x);

/// Returns the cosine of `x` in radians.
Tensor cos(Operand x);

/// Returns the tangent of `x` in radians.
Tensor tan(Operand x);

/// Returns the hyperbolic tangent of `x`.
Tensor tanh(Operand x);

/// Returns 1 / (1 + e^-x).
Tensor sigmoid(Operand x);

/// Returns log(1 + e^x) without overflow. The gradient is sigmoid(x).
Tensor softplus(Operand x);

/// Returns the hyperbolic sine of `x`.
Tensor sinh(Operand x);

/// Returns the inverse hyperbolic sine of `x`.
Tensor asinh(Operand x);

/// Returns the inverse hyperbolic cosine of `x`, or NaN if x < 1.
Tensor acosh(Operand x);

/// Returns the inverse hyperbolic tangent of `x`, or NaN if |x| > 1.
Tensor atanh(Operand x);

/// Returns max(x, 0). The gradient at 0 is 0. Supports f32, i32 and u32.
Tensor relu(Operand x);

/// Returns the error function of `x`.
Tensor erf(Operand x);

/// Returns whether a == b, as bool. NaN is not equal to anything. Supports f32, i32, u32 and bool.
Tensor eq(Operand a, Operand b);

/// Returns whether a != b, as bool. Supports f32, i32, u32 and bool.
Tensor ne(Operand a, Operand b);

/// Returns whether a < b, as bool. Supports f32, i32 and u32.
Tensor lt(Operand a, Operand b);

/// Returns whether a <= b, as bool. Supports f32, i32 and u32.
Tensor le(Operand a, Operand b);

/// Returns whether a > b, as bool. Supports f32, i32 and u32.
Tensor gt(Operand a, Operand b);

/// Returns whether a >= b, as bool. Supports f32, i32 and u32.
Tensor ge(Operand a, Operand b);

/// Returns a && b, as bool. A tensor of another type is compared with 0 first, so NaN counts as
/// true. A number must be 0 or 1.
Tensor logical_and(Operand a, Operand b);

/// Returns a || b, as bool. Tensors of other types are converted as in logical_and().
Tensor logical_or(Operand a, Operand b);

/// Returns true if exactly one operand is true. Tensors of other types are converted as in
/// logical_and().
Tensor logical_xor(Operand a, Operand b);

/// Returns !x, as bool. Tensors of other types are converted as in logical_and().
Tensor logical_not(Operand x);

/// Returns the bitwise AND of integers, or the logical AND of booleans.
Tensor bitwise_and(Operand a, Operand b);

/// Returns the bitwise OR of integers, or the logical OR of booleans.
Tensor bitwise_or(Operand a, Operand b);

/// Returns the bitwise XOR of integers, or the logical XOR of booleans.
Tensor bitwise_xor(Operand a, Operand b);

/// Returns the bitwise complement of integers, or the logical complement of booleans.
Tensor bitwise_not(Operand x);

/// Returns the integers `a` shifted left by `b` bits, with `b` taken modulo 32.
Tensor bitwise_left_shift(Operand a, Operand b);

/// Returns the integers `a` shifted right by `b` bits, with `b` taken modulo 32. The shift is
/// arithmetic for i32 and logical for u32.
Tensor bitwise_right_shift(Operand a, Operand b);

/// Returns whether `x` is NaN, as bool. Supports f32, and i32 and u32, which are never NaN.
Tensor isnan(Operand x);

/// Returns whether `x` is neither infinite nor NaN, as bool. Supports f32, and i32 and u32, which
/// are always finite.
Tensor isfinite(Operand x);

/// Returns `a` if the condition is true, else `b`. The condition is bool; `a` and `b` have any
/// type.
Tensor where(Operand condition, Operand a, Operand b);

/// Returns `x` converted to another element type. Conversion from floats to integers truncates
/// toward zero and saturates, and NaN becomes 0. Conversion to f16 rounds to the nearest number.
/// Conversion to bool returns true if the element is not 0. Gradients pass only between f32 and
/// f16.
Tensor cast(Operand x, DType dtype);

/// Returns the bits of `x` reinterpreted as another 32-bit type. Supports f32, i32 and u32. Not
/// differentiable.
Tensor bitcast(Operand x, DType dtype);

/// Returns `x`, detached from differentiation: no gradient passes through it
/// (`torch.Tensor.detach`).
Tensor detach(Operand x);

/// Returns words of the random number generator Philox4x32-10 of Salmon, Moraes, Dror and Shaw
/// (2011). All operands are u32. The result is word `index % 4` of the block with key (seed,
/// stream) and counter `(index / 4, step, 0, 0)`.
Tensor philox(Operand index, Operand stream, Operand seed, Operand step);

// ---- composites of the ops above ---------------------------------------------------------------

/// Returns `x` limited to [lo, hi]. The gradient passes at the bounds, and NaN stays NaN. Supports
/// f32, i32 and u32. For integers, the bounds must be integers. Bounds beyond the range of the
/// type, such as infinity, have no effect. Throws UserError if lo > hi or if a bound is NaN.
Tensor clamp(Operand x, double lo, double hi);

/// Returns minimum(maximum(x, lo), hi). In a tie, `x` and the bound each get half of the gradient.
/// Supports f32, i32 and u32.
Tensor clamp(Operand x, Operand lo, Operand hi);

/// Returns whether `x` is infinite, as bool. Supports f32, i32 and u32.
Tensor isinf(Operand x);

/// Returns `x` with NaN and the infinities replaced by numbers. By default, NaN becomes 0, and the
/// infinities become the largest and the lowest float. Integers are returned unchanged.
Tensor nan_to_num(Operand x, double nan = 0,
                  double posinf = static_cast<double>(std::numeric_limits<float>::max()),
                  double neginf = static_cast<double>(std::numeric_limits<float>::lowest()));

/// Returns a + weight * (b - a). The result is exactly `b` if the weight is 1.
Tensor lerp(Operand a, Operand b, Operand weight);

/// Returns floor(a / b). Supports f32, i32 and u32; an integer divided by 0 is 0. The gradient
/// is 0.
Tensor floor_divide(Operand a, Operand b);

/// Returns a - b * floor(a / b), which has the sign of `b` (`%` in Python). Supports f32, i32 and
/// u32; for integers, remainder(x, 0) is 0.
Tensor remainder(Operand a, Operand b);

/// Returns sqrt(a^2 + b^2) without overflow. The gradient at (0, 0) is NaN, as in PyTorch.
Tensor hypot(Operand a, Operand b);

/// Returns the base-10 logarithm of `x`.
Tensor log10(Operand x);

/// Returns the inverse sine of `x` in [-pi/2, pi/2], or NaN if |x| > 1.
Tensor asin(Operand x);

/// Returns the inverse cosine of `x` in [0, pi], or NaN if |x| > 1.
Tensor acos(Operand x);

/// Returns the inverse tangent of `x` in [-pi/2, pi/2].
Tensor atan(Operand x);

/// Returns the hyperbolic cosine of `x`.
Tensor cosh(Operand x);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
