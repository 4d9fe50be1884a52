// SPDX-License-Identifier: MIT
// Gather and scatter. A negative axis counts from the end. Ops throw ShapeError if shapes do not
// match or an axis is out of range, and DtypeError if an element type is not supported.
#pragma once

#include <cstdint>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns `out[.., i, ..] = x[.., index[.., i, ..], ..]` along `axis`, like `torch.gather`. The
/// index is i32 or u32. It has as many axes as `x`, with the same sizes except along `axis`. An
/// index out of range yields 0 (see CompileOptions::check_indices).
Tensor gather(Tensor x, int axis, Tensor index, Loc loc = Loc::current());

/// Returns the rows of a table [V, D] that an i32 or u32 index [...] selects: [..., D]. An index
/// out of range yields a row of zeros.
Tensor embedding(Tensor index, Tensor table, Loc loc = Loc::current());

/// Returns `x` with the elements of `source` added at `x[.., index[.., i, ..], ..]`. The index is
/// i32 or u32 and has the shape of `source`, which differs from that of `x` only along `axis`.
/// Elements with an index out of range are dropped. Supports f32, i32 and u32; integers wrap.
Tensor scatter_add(Tensor x, int axis, Tensor index, Tensor source, Loc loc = Loc::current());

/// Returns `x` with the slice from `start` on along `axis` replaced by `update`:
///
///     out[.., start[.., 0, ..] + i, ..] = update[.., i, ..]
///
/// `update` has the type of `x`, and its sizes except along `axis`. `start` is i32 or u32. It is
/// one number, or broadcasts to the shape of `update` with size 1 along `axis`, so that each line
/// may have its own start (each sequence of a key-value cache). Elements outside of `x` are
/// dropped; `jax.lax.dynamic_update_slice` moves the slice instead. PyTorch's neighbors are
/// `torch.slice_scatter`, whose start is a constant, and `torch.index_copy`. Supports all types.
/// The gradient to `x` is zero in the slice.
///
/// If `x` is a state and the result its new value (set_state()), only the elements of `update` are
/// written, whatever the size of the state, unless the old value is read after the new one is
/// known. Otherwise, `x` is copied first.
Tensor index_update(Tensor x, int axis, Tensor start, Tensor update, Loc loc = Loc::current());

/// Returns the slices of `x` along `axis` that an i32 or u32 vector selects. An index out of range
/// yields a slice of zeros.
Tensor index_select(Tensor x, int axis, Tensor index, Loc loc = Loc::current());

/// Like gather(), but first broadcasts `x` and `index` to each other on the other axes. Both must
/// have the same number of axes.
Tensor take_along_dim(Tensor x, Tensor index, int axis, Loc loc = Loc::current());

/// Returns `x` with `x[.., index[.., i, ..], ..]` replaced by `source[.., i, ..]` along `axis`. The
/// index is i32 or u32. Index and source have the same shape, which differs from that of `x` only
/// along `axis`. If several elements have the same target, the last one along the axis wins.
/// Elements with an index out of range are dropped. For an axis of n elements and an index of m
/// along it, the cost is (n + m) log m, or n * m if one of them is at most 64.
Tensor scatter(Tensor x, int axis, Tensor index, Tensor source, Loc loc = Loc::current());

/// Returns `x` with each element replaced by the largest of itself and the elements of `source` for
/// which `x[.., index[.., i, ..], ..]` is that element, like `torch.scatter_reduce` with "amax".
/// NaN counts as the largest. Index and source are as in scatter(). Supports f32, f16, i32 and u32.
/// Of equal elements of `source`, the last receives the gradient; `x`, if equal, receives half.
/// Costs a sort of `source` along the axis and a scatter().
Tensor scatter_max(Tensor x, int axis, Tensor index, Tensor source, Loc loc = Loc::current());

/// Like scatter_max(), but takes the smallest element ("amin"). NaN counts as the smallest.
Tensor scatter_min(Tensor x, int axis, Tensor index, Tensor source, Loc loc = Loc::current());

/// Returns `x` with slice i of `source` added to slice `index[i]`, for an i32 or u32 vector
/// `index`. Slices with an index out of range are dropped. Supports f32, i32 and u32; integers
/// wrap.
Tensor index_add(Tensor x, int axis, Tensor index, Tensor source, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
