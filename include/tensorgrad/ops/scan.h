// SPDX-License-Identifier: MIT
// Ops along a line: running sums, products, extremes and recurrences; sorting; and the reductions
// that stand on them. Axes may be negative.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tensorgrad/ops/views.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad {

// ---- scans: each element from all before it, itself included
// --------------------------------------

// Running sum along an axis; f32, i32, u32 (integers wrap); truths are counted, as i32.
Tensor cumsum(Tensor x, int axis, Loc loc = Loc::current());
// Running product along an axis; f32, i32, u32 (integers wrap); of truths i32. The gradient is
// exact also where elements are 0.
Tensor cumprod(Tensor x, int axis, Loc loc = Loc::current());
// log(cumsum(exp(x))), stable; -inf where all so far are -inf, with a gradient of 0 there.
Tensor logcumsumexp(Tensor x, int axis, Loc loc = Loc::current());

struct ValuesAndIndices {
  Tensor values;   // of the type of x
  Tensor indices;  // i32, along the axis; not differentiable
};
// Largest element so far and its place: the last of equals; a NaN wins (torch.cummax). The gradient
// goes to the elements at `indices`. f32, i32, u32, bool.
ValuesAndIndices cummax(Tensor x, int axis, Loc loc = Loc::current());
// Smallest element so far, likewise.
ValuesAndIndices cummin(Tensor x, int axis, Loc loc = Loc::current());

// h[t] = a[t] * h[t-1] + b[t] along an axis, from h[-1] = initial (none: 0); with `reverse` from
// the axis' end: h[t] = a[t] * h[t+1] + b[t]. a and b: f32 of one shape, which is the result's;
// initial: that shape with size 1 on the axis. The recurrence of S4, S5, Mamba and other linear
// recurrent layers. It is associative in pairs (a, b) (Blelloch 1990; Martin and Cundy 2018), which
// is how few long lines are shared among threads: there the product of the a of a stretch must not
// overflow.
Tensor linear_recurrence(Tensor a, Tensor b, int axis, std::optional<Tensor> initial = std::nullopt,
                         bool reverse = false, Loc loc = Loc::current());

// y[0] = x[0], y[t] = combine(y[t-1], x[t]) along an axis, for a function that is associative and
// works on all elements of that axis at once: what it gets are stretches of it, of one size, and
// what it gives has their shape. With `reverse` from the axis' end. In log2(n) rounds, each over
// all n elements (Hillis and Steele 1986); for sums, products, extremes and linear recurrences the
// functions above do less.
using Combine = std::function<Tensor(Tensor earlier, Tensor later)>;
Tensor associative_scan(const Combine& combine, Tensor x, int axis = 0, bool reverse = false,
                        Loc loc = Loc::current());
// The same of several tensors of one size along the axis.
using CombineMany = std::function<std::vector<Tensor>(const std::vector<Tensor>& earlier,
                                                      const std::vector<Tensor>& later)>;
std::vector<Tensor> associative_scan(const CombineMany& combine, std::vector<Tensor> xs,
                                     int axis = 0, bool reverse = false, Loc loc = Loc::current());

// ---- sorting ------------------------------------------------------------------------------------

// The indices that sort x along an axis, i32: equal elements keep their order; NaN counts as the
// largest. f32, i32, u32, bool.
Tensor argsort(Tensor x, int axis = -1, bool descending = false, Loc loc = Loc::current());
// x sorted along an axis, and the indices it came from: as argsort. The gradient goes back to them.
ValuesAndIndices sort(Tensor x, int axis = -1, bool descending = false, Loc loc = Loc::current());
// The k largest (smallest) elements along an axis, in order, and their indices; of equals the
// first; NaN counts as the largest. 1 <= k <= the axis' size. The gradient goes back to them.
ValuesAndIndices topk(Tensor x, std::int64_t k, int axis = -1, bool largest = true,
                      Loc loc = Loc::current());

// ---- more reductions ----------------------------------------------------------------------------

// Product over axes; f32, i32, u32 (integers wrap); of truths i32. The gradient is exact also where
// elements are 0.
Tensor prod(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Is any element true (not 0; NaN is not)? bool.
Tensor any(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Are all elements true (not 0)? bool.
Tensor all(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Number of elements that are not 0 (a NaN is not), i32.
Tensor count_nonzero(Tensor x, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());
// Square root of the variance over axes, which is divided by n - correction; f32. The gradient is 0
// where it is 0.
Tensor std(Tensor x, Axes axes = {}, int correction = 1, bool keepdim = false,
           Loc loc = Loc::current());
// (sum |x|^p)^(1/p) over axes for p > 0; the largest |x| for p = infinity; f32. The gradient is 0
// where the norm is 0, and for p other than 1 and 2 where an element is; equal largest ones share
// it.
Tensor norm(Tensor x, double p = 2, Axes axes = {}, bool keepdim = false, Loc loc = Loc::current());

}  // namespace tensorgrad
