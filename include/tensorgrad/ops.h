// SPDX-License-Identifier: MIT
// Ops. Each is a free function on tensors; shapes broadcast as in NumPy (aligned at the last axis).
// Axes may be negative. Names and conventions are PyTorch's where it has the op. What does not fit
// throws ShapeError or DtypeError with the line of the call.
#pragma once

#include <optional>
#include <source_location>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// ---- pointwise: f32 -> f32 unless said otherwise ----------------------------------------------

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
// The smaller; NaN wins; at a tie each side has half the gradient.
Tensor minimum(Operand a, Operand b);
// The larger; NaN wins; at a tie each side has half the gradient.
Tensor maximum(Operand a, Operand b);
// a to the power of b.
Tensor pow(Operand a, Operand b);
// The angle of the point (b, a), in (-pi, pi].
Tensor atan2(Operand a, Operand b);
// -x; f32, i32.
Tensor neg(Operand x);
// |x|; gradient 0 at 0; f32, i32.
Tensor abs(Operand x);
// -1, 0 or 1; f32, i32.
Tensor sign(Operand x);
// The largest integer not above x.
Tensor floor(Operand x);
// The smallest integer not below x.
Tensor ceil(Operand x);
// The nearest integer, halves to even.
Tensor round(Operand x);
// The integer part.
Tensor trunc(Operand x);
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
// max(x, 0); gradient 0 at 0; f32, i32.
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
// bool, bool -> bool.
Tensor logical_and(Operand a, Operand b);
// bool, bool -> bool.
Tensor logical_or(Operand a, Operand b);
// bool, bool -> bool.
Tensor logical_xor(Operand a, Operand b);
// bool -> bool.
Tensor logical_not(Operand x);
// Integers, bit by bit.
Tensor bitwise_and(Operand a, Operand b);
// Integers, bit by bit.
Tensor bitwise_or(Operand a, Operand b);
// Integers, bit by bit.
Tensor bitwise_xor(Operand a, Operand b);
// Integers; the amount is taken modulo 32.
Tensor bitwise_left_shift(Operand a, Operand b);
// Integers; the amount is taken modulo 32; i32 keeps its sign.
Tensor bitwise_right_shift(Operand a, Operand b);
// f32 -> bool.
Tensor isnan(Operand x);
// f32 -> bool.
Tensor isfinite(Operand x);
// a where the condition (bool) holds, else b.
Tensor where(Operand condition, Operand a, Operand b);
// To another element type: f32 to integers truncates toward zero and saturates, NaN gives 0.
Tensor cast(Operand x, DType dtype);
// The same bits as another type of the same size.
Tensor bitcast(Operand x, DType dtype);
// x; nothing is differentiated through it (torch.Tensor.detach).
Tensor detach(Operand x);
// A word of Philox4x32-10 (Salmon et al. 2011): u32 index, stream, seed and step give word index %
// 4 of the block with key (seed, stream) and counter (index / 4, step, 0, 0).
Tensor philox(Operand index, Operand stream, Operand seed, Operand step);
// x limited to [lo, hi]; the gradient passes at the bounds.
Tensor clamp(Operand x, double lo, double hi);

// ---- making tensors ---------------------------------------------------------------------------

// A tensor of equal elements.
Tensor full(const Shape& shape, double value, DType dtype = f32, Loc loc = Loc::current());
// A tensor of zeros.
Tensor zeros(const Shape& shape, DType dtype = f32, Loc loc = Loc::current());
// A tensor of ones.
Tensor ones(const Shape& shape, DType dtype = f32, Loc loc = Loc::current());
// 0, 1, ... n-1.
Tensor arange(std::int64_t n, DType dtype = i32, Loc loc = Loc::current());
// Each element is its own index along `axis`.
Tensor iota(const Shape& shape, int axis, DType dtype = i32, Loc loc = Loc::current());
// The given elements, row-major; as many as the shape has. They are part of the compiled program:
// for more than a few use an input or a parameter.
Tensor constant(const std::vector<float>& values, const Shape& shape, Loc loc = Loc::current());
Tensor constant(const std::vector<std::int32_t>& values, const Shape& shape,
                Loc loc = Loc::current());
// A number that the program's owner may change from step to step (Trainer::set): f32[].
Tensor scalar(const std::string& name, double initial, Loc loc = Loc::current());

// A tensor that keeps its value from step to step; it starts as `initial` everywhere, and holds
// after each step what set_state() gave it in the traced function. Saved with checkpoints.
Tensor state(const std::string& name, const Shape& shape, double initial = 0, DType dtype = f32,
             Loc loc = Loc::current());
// What the state of that name holds after the step: a tensor of its type. Throws UserError where
// there is no such state or it is set twice.
void set_state(const std::string& name, Tensor value, Loc loc = Loc::current());

// ---- reductions -------------------------------------------------------------------------------

// A list of axes; none stands for all of them.
struct Axes {
  Axes() = default;
  Axes(int axis) : list{axis} {}                          // NOLINT(google-explicit-constructor)
  Axes(std::initializer_list<int> axes) : list(axes) {}   // NOLINT(google-explicit-constructor)
  Axes(std::vector<int> axes) : list(std::move(axes)) {}  // NOLINT(google-explicit-constructor)
  std::vector<int> list;
};

// Sum over axes.
Tensor sum(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Mean over axes; f32.
Tensor mean(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Largest element; NaN wins; equal ones share the gradient (torch.amax).
Tensor max(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Smallest element; NaN wins; equal ones share the gradient (torch.amin).
Tensor min(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Variance over axes, divided by n - correction.
Tensor var(Tensor x, Axes axes = {}, int correction = 1, bool keepdim = false,
           Loc loc = Loc::current());
// log(sum(exp(x))), stable; all -inf gives -inf.
Tensor logsumexp(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Index of the largest element along an axis (none: of all elements, row-major), i32; the first of
// equals; a NaN wins.
Tensor argmax(Tensor x, std::optional<int> axis = std::nullopt, bool keepdim = false,
              Loc loc = Loc::current());
// Index of the smallest element, likewise.
Tensor argmin(Tensor x, std::optional<int> axis = std::nullopt, bool keepdim = false,
              Loc loc = Loc::current());

// ---- views: no data moves ---------------------------------------------------------------------

// The same elements in another shape; one size may be -1.
Tensor reshape(Tensor x, const Shape& shape, Loc loc = Loc::current());
// Axis i of the result is axis axes[i] of x.
Tensor permute(Tensor x, const std::vector<int>& axes, Loc loc = Loc::current());
// Swaps two axes.
Tensor transpose(Tensor x, int a = -2, int b = -1, Loc loc = Loc::current());
// Axes of size 1, and missing leading ones, repeated up to `shape`.
Tensor broadcast_to(Tensor x, const Shape& shape, Loc loc = Loc::current());
// Elements [start, start + length) of an axis.
Tensor narrow(Tensor x, int axis, std::int64_t start, std::int64_t length,
              Loc loc = Loc::current());
// Adds (before, after) pairs of elements, the last axis first, as torch.nn.functional.pad.
Tensor pad(Tensor x, const std::vector<std::int64_t>& amounts, double value = 0,
           Loc loc = Loc::current());
// The elements of these axes in reverse order.
Tensor flip(Tensor x, Axes axes, Loc loc = Loc::current());
// A new axis of size 1.
Tensor unsqueeze(Tensor x, int axis, Loc loc = Loc::current());
// Drops an axis of size 1.
Tensor squeeze(Tensor x, int axis, Loc loc = Loc::current());
// Makes one axis of the axes first..last.
Tensor flatten(Tensor x, int first = 0, int last = -1, Loc loc = Loc::current());

// ---- placing and picking ----------------------------------------------------------------------

// The parts one behind another along an axis; other sizes must agree.
Tensor concat(const std::vector<Tensor>& parts, int axis = 0, Loc loc = Loc::current());
// Like concat, along a new axis.
Tensor stack(const std::vector<Tensor>& parts, int axis = 0, Loc loc = Loc::current());
// out[.., i, ..] = x[.., index[.., i, ..], ..] along axis; index i32 or u32 of the same rank, and
// of the same sizes on other axes. Out of range gives 0 (and see CompileOptions::check_indices).
Tensor gather(Tensor x, int axis, Tensor index, Loc loc = Loc::current());
// Rows of a table [V, D] by index [...]: [..., D].
Tensor embedding(Tensor index, Tensor table, Loc loc = Loc::current());
// x, plus source's elements added at x[.., index[.., i, ..], ..]; out of range is dropped.
Tensor scatter_add(Tensor x, int axis, Tensor index, Tensor source, Loc loc = Loc::current());

// ---- products ---------------------------------------------------------------------------------

// [..., M, K] x [..., K, N] -> [..., M, N]; batch axes broadcast.
Tensor matmul(Tensor a, Tensor b, Loc loc = Loc::current());
// x [..., in] times weight [out, in] transposed, plus bias [out]: [..., out].
Tensor linear(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
              Loc loc = Loc::current());

// ---- composites -------------------------------------------------------------------------------

// exp(x) / sum(exp(x)) along an axis, stable; a row of -inf alone gives NaN, as in PyTorch.
Tensor softmax(Tensor x, int axis = -1, Loc loc = Loc::current());
// log(softmax(x)), stable; an element -inf gives -inf.
Tensor log_softmax(Tensor x, int axis = -1, Loc loc = Loc::current());
enum class Gelu { kExact, kTanh };
// x * Phi(x) (Hendrycks and Gimpel 2016), or its tanh approximation.
Tensor gelu(Tensor x, Gelu form = Gelu::kExact, Loc loc = Loc::current());
// x * sigmoid(x).
Tensor silu(Tensor x, Loc loc = Loc::current());
// (x - mean) / sqrt(var + eps) * weight + bias over the last axis (Ba, Kiros and Hinton 2016).
Tensor layer_norm(Tensor x, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());
// Zero with probability p, else x / (1 - p); another pattern at each step.
Tensor dropout(Tensor x, double p, Loc loc = Loc::current());

enum class Reduction { kMean, kSum, kNone };
// Mean over all elements of (a - b)^2.
Tensor mse(Tensor a, Tensor b, Reduction reduction = Reduction::kMean, Loc loc = Loc::current());
// -log softmax(logits)[target]; logits [..., C], targets i32 [...]. -inf logits are fine where they
// are not the target.
Tensor cross_entropy(Tensor logits, Tensor targets, Reduction reduction = Reduction::kMean,
                     Loc loc = Loc::current());

// ---- random numbers: Philox4x32-10, by (seed, op, step, element), the same on every backend ----

// Uniform 32-bit words.
Tensor random_bits(const Shape& shape, Loc loc = Loc::current());
// Uniform in [0, 1).
Tensor rand(const Shape& shape, Loc loc = Loc::current());
// Normal, mean 0, standard deviation 1 (Box and Muller 1958).
Tensor randn(const Shape& shape, Loc loc = Loc::current());

// Four pixels (or other bytes) a word, lowest byte first: u32 [..., n] -> f32 [..., 4n] in 0..255.
Tensor unpack_bytes(Tensor words, Loc loc = Loc::current());

// The gradient of a scalar f32 loss with respect to each of `wrt`.
std::vector<Tensor> grad(Tensor loss, const std::vector<Tensor>& wrt, Loc loc = Loc::current());

}  // namespace tensorgrad
