// SPDX-License-Identifier: MIT
// Sorting along an axis. A negative axis counts from the end. Ops throw ShapeError if the axis is
// out of range, and DtypeError if the element type is not supported.
#pragma once

#include <cstdint>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Elements of a tensor and their indices along an axis.
struct ValuesAndIndices {
  Tensor values;   ///< Elements, of the type of the tensor.
  Tensor indices;  ///< Indices along the axis, i32. Not differentiable.
};

/// Returns the indices that sort `x` along an axis, as i32. The sort is stable, and NaN counts as
/// the largest value. Supports f32, i32, u32 and bool.
Tensor argsort(Tensor x, int axis = -1, bool descending = false, Loc loc = Loc::current());

/// Returns `x` sorted along an axis, and the indices of argsort(). The gradient goes to the
/// elements at the indices.
ValuesAndIndices sort(Tensor x, int axis = -1, bool descending = false, Loc loc = Loc::current());

/// Returns the k largest elements along an axis in sorted order, and their indices. If `largest` is
/// false, returns the k smallest. In a tie, the first elements are returned. NaN counts as the
/// largest value. The gradient goes to the elements at the indices. Throws ShapeError if k is less
/// than 1 or more than the size of the axis.
ValuesAndIndices topk(Tensor x, std::int64_t k, int axis = -1, bool largest = true,
                      Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
