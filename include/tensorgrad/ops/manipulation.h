// SPDX-License-Identifier: MIT
// Joining, padding, repeating and masking tensors. A negative axis counts from the end. Ops throw
// ShapeError if axes, shapes or amounts do not match, and DtypeError if element types differ or are
// not supported.
#pragma once

#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns the parts concatenated along an axis. Their other sizes and their types must be equal;
/// in mixed precision, f16 and f32 parts become f32. Calls with a list in braces need the
/// namespace: `tg::concat({a, b})`.
Tensor concat(const std::vector<Tensor>& parts, int axis = 0, Loc loc = Loc::current());

/// Returns the parts stacked along a new axis. Their shapes must be equal. Calls with a list in
/// braces need the namespace: `tg::stack({a, b})`.
Tensor stack(const std::vector<Tensor>& parts, int axis = 0, Loc loc = Loc::current());

/// Returns `x` padded with `value`. The amounts are pairs (before, after), those of the last axis
/// first, as in `torch.nn.functional.pad`. Throws ShapeError if an amount is negative or if there
/// are more pairs than axes.
Tensor pad(Tensor x, const std::vector<std::int64_t>& amounts, double value = 0,
           Loc loc = Loc::current());

/// Returns the lower triangle of the last two axes: the elements on and below diagonal k, else 0.
/// Diagonal 0 is the main diagonal, and positive ones are above it.
Tensor tril(Tensor x, std::int64_t k = 0, Loc loc = Loc::current());

/// Returns the upper triangle of the last two axes: the elements on and above diagonal k, else 0.
Tensor triu(Tensor x, std::int64_t k = 0, Loc loc = Loc::current());

/// Returns diagonal k of a matrix. For a vector, returns a square matrix that has it on diagonal k
/// and zeros elsewhere.
Tensor diag(Tensor x, std::int64_t k = 0, Loc loc = Loc::current());

/// Returns `x` rolled along the given axes: element i moves to i + shift, modulo the size
/// (`torch.roll`).
Tensor roll(Tensor x, const std::vector<std::int64_t>& shifts, const std::vector<int>& axes,
            Loc loc = Loc::current());

/// Returns `x` repeated `counts[i]` times along each axis, like `torch.tile`. If there are fewer
/// counts than axes, the missing leading counts are 1. If there are more, leading axes are added to
/// `x`.
Tensor tile(Tensor x, const std::vector<std::int64_t>& counts, Loc loc = Loc::current());

/// Like tile(), but throws ShapeError if there are fewer counts than axes (`torch.Tensor.repeat`).
Tensor repeat(Tensor x, const std::vector<std::int64_t>& counts, Loc loc = Loc::current());

/// Returns `x` with each element along an axis repeated `count` times in a row.
Tensor repeat_interleave(Tensor x, std::int64_t count, int axis, Loc loc = Loc::current());

/// Source of the elements that pad() adds.
enum class PadMode {
  kReflect,    ///< Mirrors the axis without repeating the edge. Adds fewer elements than it has.
  kReplicate,  ///< Repeats the edge.
  kCircular    ///< Continues with the other end. Adds at most as many elements as the axis has.
};

/// Returns `x` padded with its own elements, like `torch.nn.functional.pad`. The amounts are pairs
/// (before, after), those of the last axis first. Throws ShapeError if an amount is negative or too
/// large for the mode, or if there are more pairs than axes.
Tensor pad(Tensor x, const std::vector<std::int64_t>& amounts, PadMode mode,
           Loc loc = Loc::current());

/// Returns `x` with `value` in place of the elements for which `mask` is true. The mask is bool.
/// The value is a number or a tensor. All of them broadcast, as in where().
Tensor masked_fill(Tensor x, Tensor mask, Operand value, Loc loc = Loc::current());

/// Returns the bytes of 32-bit words as f32 in [0, 255], the lowest byte first: u32 [..., n] ->
/// [..., 4n]. Images can thus be uploaded with one byte per pixel.
Tensor unpack_bytes(Tensor words, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
