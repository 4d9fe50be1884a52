// SPDX-License-Identifier: MIT
// Reductions over axes. By default, the reduced axes are dropped; with `keepdim`, they stay with
// size 1. Ops throw DtypeError if the element type is not supported.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Axes of a tensor. An empty list means all axes. A negative axis counts from the end. Ops throw
/// ShapeError if an axis is out of range or occurs twice.
struct Axes {
  Axes() = default;

  /// Converts one axis or a list of axes.
  Axes(int axis) : list{axis} {}                          // NOLINT(google-explicit-constructor)
  Axes(std::initializer_list<int> axes) : list(axes) {}   // NOLINT(google-explicit-constructor)
  Axes(std::vector<int> axes) : list(std::move(axes)) {}  // NOLINT(google-explicit-constructor)

  std::vector<int> list;  ///< The axes, in any order; empty: all axes.
};

/// Returns the sum over `axes` (default: all axes). Supports f32, i32 and u32; integer sums wrap.
/// For a boolean tensor, returns the number of true elements as i32.
Tensor sum(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

/// Returns the mean over `axes` (default: all axes). Supports f32.
Tensor mean(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

/// Returns the maximum over `axes` (default: all axes), or NaN if an element is NaN. Equal maxima
/// share the gradient evenly, as in `torch.amax`. Supports f32, i32, u32 and bool.
Tensor max(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

/// Returns the minimum over `axes` (default: all axes), or NaN if an element is NaN. Equal minima
/// share the gradient evenly, as in `torch.amin`. Supports f32, i32, u32 and bool.
Tensor min(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

/// Returns the variance over `axes` (default: all axes). The sum of squares is divided by
/// `n - correction`. Throws ShapeError if `n <= correction`. Supports f32.
Tensor var(Tensor x, Axes axes = {}, int correction = 1, bool keepdim = false,
           Loc loc = Loc::current());

/// Returns log(sum(exp(x))) over `axes` (default: all axes) without overflow. If all elements
/// are -inf, returns -inf. Supports f32.
Tensor logsumexp(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

/// Returns the index of the maximum along an axis, as i32. In a tie, returns the first index; a NaN
/// counts as the maximum. Without an axis, returns the row-major index among all elements. Supports
/// f32, i32, u32 and bool.
Tensor argmax(Tensor x, std::optional<int> axis = std::nullopt, bool keepdim = false,
              Loc loc = Loc::current());

/// Returns the index of the minimum along an axis, as i32. In a tie, returns the first index; a NaN
/// counts as the minimum. Without an axis, returns the row-major index among all elements. Supports
/// f32, i32, u32 and bool.
Tensor argmin(Tensor x, std::optional<int> axis = std::nullopt, bool keepdim = false,
              Loc loc = Loc::current());

/// Returns the product over `axes` (default: all axes). Supports f32, i32 and u32; integers wrap.
/// The product of booleans is i32. The gradient is exact even if elements are 0.
Tensor prod(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

/// Returns whether any element along `axes` (default: all axes) is true, as bool. Numbers are true
/// if they are not 0; NaN is true.
Tensor any(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

/// Returns whether all elements along `axes` (default: all axes) are true, as bool. Numbers are
/// true if they are not 0; NaN is true.
Tensor all(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

/// Returns the number of nonzero elements along `axes` (default: all axes), as i32. NaN is nonzero.
Tensor count_nonzero(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

/// Returns the standard deviation over `axes` (default: all axes), the square root of var(). If it
/// is 0, its gradient is 0. Supports f32.
Tensor std(Tensor x, Axes axes = {}, int correction = 1, bool keepdim = false,
           Loc loc = Loc::current());

/// Returns the p-norm over `axes` (default: all axes): (sum |x|^p)^(1/p), or the largest |x| if p
/// is infinite. The gradient is 0 for elements that are 0. If p is infinite, equal maxima share the
/// gradient evenly. Supports f32. Throws UserError unless p > 0.
Tensor norm(Tensor x, double p = 2, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
