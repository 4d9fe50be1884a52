// SPDX-License-Identifier: MIT
// Scans along an axis: running sums, products and extremes, and recurrences. A negative axis counts
// from the end. Ops throw ShapeError if shapes do not match or an axis is out of range, and
// DtypeError if an element type is not supported.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tensorgrad/ops/sorting.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns the running sum along an axis. Supports f32, i32 and u32; integers wrap. For a boolean
/// tensor, returns the running number of true elements as i32.
Tensor cumsum(Tensor x, int axis, Loc loc = Loc::current());

/// Returns the running product along an axis. Supports f32, i32 and u32; integers wrap. The product
/// of booleans is i32. The gradient is exact even if elements are 0.
Tensor cumprod(Tensor x, int axis, Loc loc = Loc::current());

/// Returns log(cumsum(exp(x))) along an axis without overflow. If all elements so far are -inf,
/// returns -inf with a gradient of 0. Supports f32.
Tensor logcumsumexp(Tensor x, int axis, Loc loc = Loc::current());

/// Returns the running maximum along an axis and its indices, like `torch.cummax`. In a tie, the
/// index is the last one; a NaN counts as the maximum. The gradient goes to the elements at the
/// indices. Supports f32, i32, u32 and bool.
ValuesAndIndices cummax(Tensor x, int axis, Loc loc = Loc::current());

/// Returns the running minimum along an axis and its indices, like `torch.cummin`. In a tie, the
/// index is the last one; a NaN counts as the minimum. The gradient goes to the elements at the
/// indices. Supports f32, i32, u32 and bool.
ValuesAndIndices cummin(Tensor x, int axis, Loc loc = Loc::current());

/// Returns the linear recurrence h[t] = a[t] * h[t-1] + b[t] along an axis, from h[-1] = initial
/// (default: 0). With `reverse`, computes h[t] = a[t] * h[t+1] + b[t] from the end of the axis. The
/// result has the shape of `a` and `b`, which are f32 tensors of equal shape. The initial value has
/// that shape with size 1 along the axis.
///
/// S4, S5, Mamba and other linear recurrent layers are such recurrences. If there are few long
/// sequences, they are split among threads by a parallel scan over pairs (a, b) (Blelloch 1990;
/// Martin and Cundy 2018). In this case, the product of `a` over a segment must not overflow.
Tensor linear_recurrence(Tensor a, Tensor b, int axis, std::optional<Tensor> initial = std::nullopt,
                         bool reverse = false, Loc loc = Loc::current());

/// Associative function of associative_scan(). It receives segments of equal size along the axis,
/// combines them element by element, and returns a tensor of the same shape and element type.
using Combine = std::function<Tensor(Tensor earlier, Tensor later)>;

/// Returns the scan y[0] = x[0], y[t] = combine(y[t-1], x[t]) along an axis. With `reverse`, starts
/// from the end of the axis. Runs log2(n) rounds over all n elements (Hillis and Steele 1986). For
/// sums, products, extremes and linear recurrences, the other functions of this header do less
/// work. Throws ShapeError if `combine` returns another shape or element type.
Tensor associative_scan(const Combine& combine, Tensor x, int axis = 0, bool reverse = false,
                        Loc loc = Loc::current());

/// Associative function of associative_scan() for several tensors. It returns as many tensors as it
/// receives on each side, of the same shapes and element types.
using CombineMany = std::function<std::vector<Tensor>(const std::vector<Tensor>& earlier,
                                                      const std::vector<Tensor>& later)>;

/// Like associative_scan() of one tensor, but scans several tensors together. They have the same
/// size along the axis. Throws UserError if there are no tensors or `combine` returns another
/// number of them, and ShapeError if one has another shape or element type.
std::vector<Tensor> associative_scan(const CombineMany& combine, std::vector<Tensor> xs,
                                     int axis = 0, bool reverse = false, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
