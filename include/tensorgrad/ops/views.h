// SPDX-License-Identifier: MIT
// Views: ops that do not move data. A negative axis counts from the end. Ops throw ShapeError if an
// axis, range or size does not match the shape of `x`.
#pragma once

#include <cstdint>
#include <vector>

#include "tensorgrad/ops/reduction.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns the elements of `x` in another shape. One size can be -1, to be inferred.
Tensor reshape(Tensor x, const Shape& shape, Loc loc = Loc::current());

/// Returns `x` with its axes permuted: axis i of the result is axis `axes[i]` of `x`.
Tensor permute(Tensor x, const std::vector<int>& axes, Loc loc = Loc::current());

/// Returns `x` with two axes swapped.
Tensor transpose(Tensor x, int a = -2, int b = -1, Loc loc = Loc::current());

/// Returns `x` broadcast to a shape: axes of size 1 and missing leading axes are repeated.
Tensor broadcast_to(Tensor x, const Shape& shape, Loc loc = Loc::current());

/// Returns the elements [start, start + length) of an axis.
Tensor narrow(Tensor x, int axis, std::int64_t start, std::int64_t length,
              Loc loc = Loc::current());

/// Returns `x` with the elements of the given axes in reverse order.
Tensor flip(Tensor x, Axes axes, Loc loc = Loc::current());

/// Returns the windows of an axis, which can overlap: [.., L, ..] -> [.., N, .., size]. There are
/// `N = (L - dilation * (size - 1) - 1) / step + 1` windows. Element j of window n is element
/// `n * step + j * dilation` of the axis (`torch.Tensor.unfold`, with a dilation).
Tensor unfold(Tensor x, int axis, std::int64_t size, std::int64_t step, std::int64_t dilation = 1,
              Loc loc = Loc::current());

/// Returns `x` with a new axis of size 1, which is axis `axis` of the result.
Tensor unsqueeze(Tensor x, int axis, Loc loc = Loc::current());

/// Returns `x` without an axis of size 1. Throws ShapeError if the axis has another size.
Tensor squeeze(Tensor x, int axis, Loc loc = Loc::current());

/// Returns `x` with the axes `first` to `last` merged into one. A scalar becomes a vector of
/// size 1.
Tensor flatten(Tensor x, int first = 0, int last = -1, Loc loc = Loc::current());

/// Returns `x` with two axes swapped, like transpose().
Tensor swapaxes(Tensor x, int a, int b, Loc loc = Loc::current());

/// Returns `x` with axes `from` moved to positions `to`. The other axes keep their order.
Tensor movedim(Tensor x, const std::vector<int>& from, const std::vector<int>& to,
               Loc loc = Loc::current());

/// Like broadcast_to(), but a size of -1 keeps the size of `x`.
Tensor expand(Tensor x, const Shape& shape, Loc loc = Loc::current());

/// Returns parts of `size` elements along an axis. The last part can be smaller.
std::vector<Tensor> split(Tensor x, std::int64_t size, int axis = 0, Loc loc = Loc::current());

/// Returns parts of the given sizes along an axis. Throws ShapeError if their sum is not the size
/// of the axis.
std::vector<Tensor> split(Tensor x, const std::vector<std::int64_t>& sizes, int axis = 0,
                          Loc loc = Loc::current());

/// Returns at most `count` parts along an axis, like `torch.chunk`. All have the same size, except
/// that the last part can be smaller.
std::vector<Tensor> chunk(Tensor x, std::int64_t count, int axis = 0, Loc loc = Loc::current());

/// Returns the slices along an axis, each without that axis.
std::vector<Tensor> unbind(Tensor x, int axis = 0, Loc loc = Loc::current());

/// Returns the diagonal x[.., i, .., i + offset, ..] of two axes, as the last axis of the result.
Tensor diagonal(Tensor x, std::int64_t offset = 0, int axis1 = 0, int axis2 = 1,
                Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
