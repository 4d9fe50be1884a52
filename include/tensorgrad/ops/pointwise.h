// SPDX-License-Identifier: MIT
// Pointwise ops: one result element from the operands' elements at the same index. Shapes broadcast
// as in NumPy, aligned at the last axis. f32 -> f32 unless said otherwise.
#pragma once

#include <limits>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// a + b; f32, i32, u32 (integers wrap).
Tensor add(Operand a, Operand b);
// a - b; f32, i32, u32 (integers wrap).
Tensor sub(Operand a, Operand b);
// a * b; f32, i32, u32 (integers wrap).
Tensor mul(Operand a, Operand b);
// a / b; integers truncate toward zero, and x / 0 is 0.
Tensor div(Operand a, Operand b);
// a - b * trunc(a / b), C's fmod; integers too (fmod(x, 0) is 0).
Tensor fmod(Operand a, Operand b);
// The smaller; NaN wins; at a tie each side has half the gradient. f32, i32, u32, and bool: a && b.
Tensor minimum(Operand a, Operand b);
// The larger; NaN wins; at a tie each side has half the gradient. f32, i32, u32, and bool: a || b.
Tensor maximum(Operand a, Operand b);
// a to the power of b; f32, i32, u32 (integers wrap; to a negative power 1, -1 and, of all others,
// 0).
Tensor pow(Operand a, Operand b);
// The angle of the point (b, a), in (-pi, pi].
Tensor atan2(Operand a, Operand b);
// -x; f32, i32, u32 (integers wrap).
Tensor neg(Operand x);
// |x|; gradient 0 at 0; f32, i32, u32.
Tensor abs(Operand x);
// -1, 0 or 1; f32, i32, u32.
Tensor sign(Operand x);
// The largest integer not above x; integers as they are.
Tensor floor(Operand x);
// The smallest integer not below x; integers as they are.
Tensor ceil(Operand x);
// The nearest integer, halves to even; integers as they are.
Tensor round(Operand x);
// The integer part; integers as they are.
Tensor trunc(Operand x);
// The nearest number that f16 has, ties to even, as f32; from 65520 on infinity. It has no
// gradient; that of cast(cast(x, f16), f32) goes through.
Tensor round_to_f16(Operand x);
// e^x.
Tensor exp(Operand x);
// 2^x.
Tensor exp2(Operand x);
// e^x - 1, accurate near 0.
Tensor expm1(Operand x);
// Natural logarithm.
Tensor log(Operand x);
// Binary logarithm.
Tensor log2(Operand x);
// log(1 + x), accurate near 0.
Tensor log1p(Operand x);
// Square root.
Tensor sqrt(Operand x);
// 1 / sqrt(x).
Tensor rsqrt(Operand x);
// 1 / x.
Tensor reciprocal(Operand x);
// x * x; f32, i32, u32.
Tensor square(Operand x);
// Sine of radians.
Tensor sin(Operand x);
// Cosine of radians.
Tensor cos(Operand x);
// Tangent of radians.
Tensor tan(Operand x);
// Hyperbolic tangent.
Tensor tanh(Operand x);
// 1 / (1 + e^-x).
Tensor sigmoid(Operand x);
// log(1 + e^x), stable; gradient sigmoid(x).
Tensor softplus(Operand x);
// Hyperbolic sine.
Tensor sinh(Operand x);
// Inverse hyperbolic sine.
Tensor asinh(Operand x);
// Inverse hyperbolic cosine; NaN below 1.
Tensor acosh(Operand x);
// Inverse hyperbolic tangent; NaN beyond 1.
Tensor atanh(Operand x);
// max(x, 0); gradient 0 at 0; f32, i32, u32.
Tensor relu(Operand x);
// The error function.
Tensor erf(Operand x);
// Any numbers -> bool.
Tensor eq(Operand a, Operand b);
// Any numbers -> bool.
Tensor ne(Operand a, Operand b);
// Any numbers -> bool.
Tensor lt(Operand a, Operand b);
// Any numbers -> bool.
Tensor le(Operand a, Operand b);
// Any numbers -> bool.
Tensor gt(Operand a, Operand b);
// Any numbers -> bool.
Tensor ge(Operand a, Operand b);
// bool, bool -> bool. Of numbers, here and below, those that are not 0 are true (a NaN is not 0).
Tensor logical_and(Operand a, Operand b);
// bool, bool -> bool.
Tensor logical_or(Operand a, Operand b);
// bool, bool -> bool.
Tensor logical_xor(Operand a, Operand b);
// bool -> bool.
Tensor logical_not(Operand x);
// Integers, bit by bit; of bools the logic.
Tensor bitwise_and(Operand a, Operand b);
// Integers, bit by bit; of bools the logic.
Tensor bitwise_or(Operand a, Operand b);
// Integers, bit by bit; of bools the logic.
Tensor bitwise_xor(Operand a, Operand b);
// Integers, bit by bit; of bools the logic.
Tensor bitwise_not(Operand x);
// Integers; the amount is taken modulo 32.
Tensor bitwise_left_shift(Operand a, Operand b);
// Integers; the amount is taken modulo 32; i32 keeps its sign.
Tensor bitwise_right_shift(Operand a, Operand b);
// f32, i32, u32 -> bool; an integer never is.
Tensor isnan(Operand x);
// f32, i32, u32 -> bool; an integer always is.
Tensor isfinite(Operand x);
// a where the condition (bool) holds, else b.
Tensor where(Operand condition, Operand a, Operand b);
// To another element type: real to integers truncates toward zero and saturates, NaN gives 0; to
// f16 rounds to the nearest.
Tensor cast(Operand x, DType dtype);
// The same bits as another type of the same size.
Tensor bitcast(Operand x, DType dtype);
// x; nothing is differentiated through it (torch.Tensor.detach).
Tensor detach(Operand x);
// A word of Philox4x32-10 (Salmon et al. 2011): u32 index, stream, seed and step give word index %
// 4 of the block with key (seed, stream) and counter (index / 4, step, 0, 0).
Tensor philox(Operand index, Operand stream, Operand seed, Operand step);

// ---- written with the ops above ----------------------------------------------------------------

// x limited to [lo, hi]; the gradient passes at the bounds. f32, i32, u32: the bounds of integers
// are whole, or beyond what the type holds, infinity among them, and then limit nothing.
Tensor clamp(Operand x, double lo, double hi);
// The same with tensors: minimum(maximum(x, lo), hi), with half of the gradient for each at a tie;
// f32, i32, u32.
Tensor clamp(Operand x, Operand lo, Operand hi);
// f32, i32, u32 -> bool: infinity or -infinity.
Tensor isinf(Operand x);
// x with NaN and the infinities replaced: by the largest floats if not told otherwise. Integers as
// they are.
Tensor nan_to_num(Operand x, double nan = 0,
                  double posinf = static_cast<double>(std::numeric_limits<float>::max()),
                  double neginf = static_cast<double>(std::numeric_limits<float>::lowest()));
// a + weight * (b - a); exactly b where weight is 1.
Tensor lerp(Operand a, Operand b, Operand weight);
// The largest integer not above a / b: f32, i32, u32 (integers: x / 0 is 0). No gradient.
Tensor floor_divide(Operand a, Operand b);
// a - b * floor(a / b): of b's sign, as Python's %; f32, i32, u32 (integers: of 0 is 0).
Tensor remainder(Operand a, Operand b);
// sqrt(a^2 + b^2) without overflow; NaN gradient at (0, 0), as in PyTorch.
Tensor hypot(Operand a, Operand b);
// Decimal logarithm.
Tensor log10(Operand x);
// Inverse sine, in [-pi/2, pi/2]; NaN beyond 1.
Tensor asin(Operand x);
// Inverse cosine, in [0, pi]; NaN beyond 1.
Tensor acos(Operand x);
// Inverse tangent, in [-pi/2, pi/2].
Tensor atan(Operand x);
// Hyperbolic cosine.
Tensor cosh(Operand x);

}  // namespace tensorgrad
