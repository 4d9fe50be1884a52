// SPDX-License-Identifier: MIT
// Making, reducing, viewing, picking and multiplying tensors. Axes may be negative.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

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

// x, under a name by which Trainer::step() and Forward::run() give its value where they are asked
// for it. Costs nothing until then: the functions that have captures as outputs are compiled when
// one is first asked for. Throws UserError where the name is empty or another capture has it.
Tensor capture(const std::string& name, Tensor x, Loc loc = Loc::current());

// ---- reductions -------------------------------------------------------------------------------

// A list of axes; none stands for all of them.
struct Axes {
  Axes() = default;
  Axes(int axis) : list{axis} {}                          // NOLINT(google-explicit-constructor)
  Axes(std::initializer_list<int> axes) : list(axes) {}   // NOLINT(google-explicit-constructor)
  Axes(std::vector<int> axes) : list(std::move(axes)) {}  // NOLINT(google-explicit-constructor)
  std::vector<int> list;
};

// Sum over axes; f32, i32, u32 (integers wrap); truths are counted, as i32.
Tensor sum(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Mean over axes; f32.
Tensor mean(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Largest element; NaN wins; equal ones share the gradient (torch.amax). f32, i32, u32, bool.
Tensor max(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Smallest element; NaN wins; equal ones share the gradient (torch.amin). f32, i32, u32, bool.
Tensor min(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Variance over axes, divided by n - correction.
Tensor var(Tensor x, Axes axes = {}, int correction = 1, bool keepdim = false,
           Loc loc = Loc::current());
// log(sum(exp(x))), stable; all -inf gives -inf.
Tensor logsumexp(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Index of the largest element along an axis (none: of all elements, row-major), i32; the first of
// equals; a NaN wins. f32, i32, u32, bool.
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
// Windows of an axis, which may overlap: [.., L, ..] -> [.., N, .., size] with N = (L - dilation *
// (size - 1) - 1) / step + 1; element (n, j) is n * step + j * dilation (torch.Tensor.unfold).
Tensor unfold(Tensor x, int axis, std::int64_t size, std::int64_t step, std::int64_t dilation = 1,
              Loc loc = Loc::current());
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
// f32, i32, u32 (integers wrap).
Tensor scatter_add(Tensor x, int axis, Tensor index, Tensor source, Loc loc = Loc::current());

// Four pixels (or other bytes) a word, lowest byte first: u32 [..., n] -> f32 [..., 4n] in 0..255.
Tensor unpack_bytes(Tensor words, Loc loc = Loc::current());

// ---- products ---------------------------------------------------------------------------------

// [..., M, K] x [..., K, N] -> [..., M, N]; batch axes broadcast. A vector [K] on the left is a
// row, one on the right a column, and that axis is dropped from the result. Of f32; and of i32 or
// u32, exactly, modulo 2^32, but without the speed: each result is a sum of its own.
Tensor matmul(Tensor a, Tensor b, Loc loc = Loc::current());
// x [..., in] times weight [out, in] transposed, plus bias [out]: [..., out].
Tensor linear(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
              Loc loc = Loc::current());

}  // namespace tensorgrad
