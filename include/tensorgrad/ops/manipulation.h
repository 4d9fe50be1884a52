// SPDX-License-Identifier: MIT
// More ways of making, viewing, placing and multiplying tensors, written with the ops of shaping.h.
// Names are PyTorch's. Axes may be negative.
#pragma once

#include <string_view>
#include <vector>

#include "tensorgrad/ops/views.h"

namespace tensorgrad {

// ---- making ------------------------------------------------------------------------------------

// Tensors of x's shape and element type.
Tensor full_like(Tensor x, double value, Loc loc = Loc::current());
Tensor zeros_like(Tensor x, Loc loc = Loc::current());
Tensor ones_like(Tensor x, Loc loc = Loc::current());
// 1 on the diagonal of [rows, columns] (columns -1: as many), else 0.
Tensor eye(std::int64_t rows, std::int64_t columns = -1, DType dtype = f32,
           Loc loc = Loc::current());
// n numbers from first to last, both included, at equal distances: f32[n].
Tensor linspace(double first, double last, std::int64_t n, Loc loc = Loc::current());
// index i32 or u32 [...] -> [..., classes], 1 where the position is the index; one that is out of
// range gives zeros.
Tensor one_hot(Tensor index, std::int64_t classes, DType dtype = f32, Loc loc = Loc::current());
// For vectors of sizes n0, n1 .. tensors [n0, n1 ..], each with its vector along its own axis
// (indexing "ij").
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, Loc loc = Loc::current());

// ---- viewing -----------------------------------------------------------------------------------

// Swaps two axes (transpose under its other name).
Tensor swapaxes(Tensor x, int a, int b, Loc loc = Loc::current());
// Axes `from` go to the places `to`; the others keep their order.
Tensor movedim(Tensor x, const std::vector<int>& from, const std::vector<int>& to,
               Loc loc = Loc::current());
// broadcast_to; a size of -1 stays as it is.
Tensor expand(Tensor x, const Shape& shape, Loc loc = Loc::current());
// Parts of `size` elements along an axis; the last may be smaller.
std::vector<Tensor> split(Tensor x, std::int64_t size, int axis = 0, Loc loc = Loc::current());
// Parts of these sizes, whose sum is the axis'.
std::vector<Tensor> split(Tensor x, const std::vector<std::int64_t>& sizes, int axis = 0,
                          Loc loc = Loc::current());
// At most `count` parts of equal size, but for the last.
std::vector<Tensor> chunk(Tensor x, std::int64_t count, int axis = 0, Loc loc = Loc::current());
// The slices along an axis, without it.
std::vector<Tensor> unbind(Tensor x, int axis = 0, Loc loc = Loc::current());
// x[.., i, .., i + offset, ..]: the two axes make one, which comes last.
Tensor diagonal(Tensor x, std::int64_t offset = 0, int axis1 = 0, int axis2 = 1,
                Loc loc = Loc::current());

// ---- placing -----------------------------------------------------------------------------------

// Elements of the last two axes on and below the diagonal number k (above it for k > 0), else 0.
Tensor tril(Tensor x, std::int64_t k = 0, Loc loc = Loc::current());
// Likewise on and above it.
Tensor triu(Tensor x, std::int64_t k = 0, Loc loc = Loc::current());
// The vector x on diagonal k of a square matrix of zeros, or diagonal k of a matrix.
Tensor diag(Tensor x, std::int64_t k = 0, Loc loc = Loc::current());
// Element i goes to i + shift; those that leave an axis come in at its other end.
Tensor roll(Tensor x, const std::vector<std::int64_t>& shifts, const std::vector<int>& axes,
            Loc loc = Loc::current());
// The tensor repeated so many times along its axes; missing leading axes are added, and missing
// leading counts are 1.
Tensor tile(Tensor x, const std::vector<std::int64_t>& counts, Loc loc = Loc::current());
// tile; a count for every axis at least (torch.Tensor.repeat).
Tensor repeat(Tensor x, const std::vector<std::int64_t>& counts, Loc loc = Loc::current());
// Each element `count` times, one after another, along an axis.
Tensor repeat_interleave(Tensor x, std::int64_t count, int axis, Loc loc = Loc::current());
// What pad() adds: the elements next to the edge in reverse order without the edge itself (fewer
// than there are), the edge again and again, or the elements of the other end (no more than there
// are).
enum class PadMode { kReflect, kReplicate, kCircular };
Tensor pad(Tensor x, const std::vector<std::int64_t>& amounts, PadMode mode,
           Loc loc = Loc::current());
// value (a number or f32[]) where mask (bool, broadcasts to x) holds, else x.
Tensor masked_fill(Tensor x, Tensor mask, Operand value, Loc loc = Loc::current());

// ---- picking -----------------------------------------------------------------------------------

// The slices of an axis that index, i32 or u32 [n], names.
Tensor index_select(Tensor x, int axis, Tensor index, Loc loc = Loc::current());
// gather(), after x and index have been broadcast to each other on the other axes.
Tensor take_along_dim(Tensor x, Tensor index, int axis, Loc loc = Loc::current());
// x with x[.., index[.., i, ..], ..] = source[.., i, ..] along an axis; index and source have the
// same shape, x's but for the axis. Of several for one place the last one along the axis wins; out
// of range is dropped. Each place looks at all its indices: x's elements times index's axis.
Tensor scatter(Tensor x, int axis, Tensor index, Tensor source, Loc loc = Loc::current());
// x plus slice i of source added at slice index[i] of the axis; index [n]. f32, i32, u32 (integers
// wrap).
Tensor index_add(Tensor x, int axis, Tensor index, Tensor source, Loc loc = Loc::current());

// ---- products ----------------------------------------------------------------------------------

// Products and sums by Einstein's convention, as torch.einsum: "bij,bjk->bik". Letters name axes
// ("..." those that have none, broadcast); one that the right side lacks is summed over, one that
// is twice in an operand takes its diagonal. Without "->" the letters that are there once stay, in
// the order of the alphabet. Operands are multiplied from left to right.
Tensor einsum(std::string_view formula, const std::vector<Tensor>& operands,
              Loc loc = Loc::current());
// Sums over the last `count` axes of a with the first of b.
Tensor tensordot(Tensor a, Tensor b, int count = 2, Loc loc = Loc::current());
// Sums over axes of a with as many of b.
Tensor tensordot(Tensor a, Tensor b, const std::vector<int>& a_axes, const std::vector<int>& b_axes,
                 Loc loc = Loc::current());
// [n], [m] -> [n, m].
Tensor outer(Tensor a, Tensor b, Loc loc = Loc::current());
// [n], [n] -> [].
Tensor dot(Tensor a, Tensor b, Loc loc = Loc::current());

}  // namespace tensorgrad
