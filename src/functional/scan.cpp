// SPDX-License-Identifier: MIT
// Scans, sorting, and the reductions that stand on them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers.h"
#include "ops/pointwise.h"
#include "ops/structured.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

Tensor scanned(const OpDef& def, const char* name, Tensor x, int axis,
               const SourceLocation& location) {
  OpContext ctx(name, location);
  const Expr in = op::bools_to_i32(ctx.in(x));
  const std::int64_t along = resolve_axis(axis, in.shape(), ctx.name(), ctx.location());
  const Attrs attrs = {{"axis", along}, {"reverse", std::int64_t{0}}};
  return ctx.out(op::apply(ctx.builder, def, {in}, attrs));
}

ValuesAndIndices running_extreme(const OpDef& def, const char* name, Tensor x, int axis, Loc loc) {
  const Composite composite(name, loc);
  const Tensor indices = scanned(def, name, x, axis, loc);
  return {gather(x, axis, indices, loc), indices};
}

void demand_float(const char* name, const Tensor& x, const SourceLocation& location) {
  if (register_dtype(x.dtype()) == DType::kF32) return;
  throw DtypeError(std::string(name) + ": expected f32, got " + std::string(to_string(x.dtype())),
                   location);
}

// The size of an axis of a composite's argument.
std::int64_t size_along(const Tensor& x, int axis, const char* name,
                        const SourceLocation& location) {
  const Shape shape = x.shape();
  return shape[static_cast<std::size_t>(resolve_axis(axis, shape, name, location))];
}

Tensor truth(Tensor x) { return x.dtype() == DType::kBool ? x : ne(x, 0.0); }

// f32 as words whose order as numbers is that of the elements, all above 0: -0 is 0, and NaN stands
// above infinity. Turned round they still are all above 0.
Tensor rank_words(Tensor x, bool largest) {
  const Tensor bits = bitcast(where(eq(x, 0.0), 0.0, x), DType::kU32);
  constexpr std::uint32_t kSign = 0x80000000u, kAll = 0xffffffffu, kNan = 0xff800001u;
  const Tensor ordered = where(ge(bits, kSign), bitwise_xor(bits, kAll), bitwise_or(bits, kSign));
  const Tensor words = where(isnan(x), kNan, ordered);
  return largest ? words : bitwise_xor(words, kAll);
}

// Up to this many are found one after another, each by a look at all elements.
constexpr std::int64_t kMaxRounds = 8;

// Each round's element is the first of the largest words that come after the last round's: those
// before have been found, and count as 0.
Tensor best_places(Tensor x, std::int64_t k, int axis, bool largest, Loc loc) {
  const Tensor words = rank_words(x, largest);
  const Tensor place = iota(x.shape(), axis, DType::kI32, loc);
  Tensor left = words;
  std::vector<Tensor> found;
  for (std::int64_t i = 0; i < k; ++i) {
    found.push_back(argmax(left, axis, true, loc));
    if (i + 1 == k) break;
    const Tensor last = max(left, axis, true, loc);
    const Tensor after = lt(words, last) || (eq(words, last) && gt(place, found.back()));
    left = where(after, words, 0);
  }
  return concat(found, axis, loc);
}

// Axes of a composite's argument, those that stay and those that go.
struct Split {
  Split(const Tensor& x, const Axes& axes, const char* name, const SourceLocation& location)
      : kept(x.shape()) {
    const std::vector<std::int64_t> list = resolve_axes(axes.list, x.shape(), name, location);
    for (std::size_t d = 0; d < kept.size(); ++d) {
      const bool goes = contains(list, static_cast<std::int64_t>(d));
      if (!goes) order.push_back(static_cast<int>(d));
      if (!goes) rest.push_back(kept[d]);
    }
    for (const std::int64_t axis : list) {
      order.push_back(static_cast<int>(axis));
      count *= kept[static_cast<std::size_t>(axis)];
      kept[static_cast<std::size_t>(axis)] = 1;
    }
  }

  Shape kept, rest;        // with the axes as 1, and without them
  std::vector<int> order;  // those that go are last
  std::int64_t count = 1;  // elements that are reduced to one
};

// More are the first elements of a whole sort.
constexpr std::int64_t kMaxSelected = 1024;

Tensor selected_places(Tensor x, std::int64_t k, int axis, bool largest, Loc loc) {
  OpContext ctx("topk", loc);
  const Expr in = op::bools_to_i32(ctx.in(x));
  const std::int64_t along = resolve_axis(axis, in.shape(), ctx.name(), ctx.location());
  const Attrs attrs = {{"axis", along}, {"descending", std::int64_t{largest ? 1 : 0}}, {"k", k}};
  return ctx.out(op::apply(ctx.builder, ops::topk_indices, {in}, attrs));
}

}  // namespace

Tensor cumsum(Tensor x, int axis, Loc loc) { return scanned(ops::cumsum, "cumsum", x, axis, loc); }

Tensor cumprod(Tensor x, int axis, Loc loc) {
  return scanned(ops::cumprod, "cumprod", x, axis, loc);
}

ValuesAndIndices cummax(Tensor x, int axis, Loc loc) {
  return running_extreme(ops::arg_cummax, "cummax", x, axis, loc);
}

ValuesAndIndices cummin(Tensor x, int axis, Loc loc) {
  return running_extreme(ops::arg_cummin, "cummin", x, axis, loc);
}

Tensor linear_recurrence(Tensor a, Tensor b, int axis, std::optional<Tensor> initial, bool reverse,
                         Loc loc) {
  std::vector<Tensor*> tensors = {&a, &b};
  if (initial) tensors.push_back(&*initial);
  const Upcast downcast(tensors);
  OpContext ctx("linear_recurrence", loc);
  const Expr factors = ctx.in(a);
  Expr terms = ctx.in(b);
  const Shape shape = factors.shape();
  const std::int64_t along = resolve_axis(axis, shape, ctx.name(), ctx.location());
  const Attrs attrs = {{"axis", along}, {"reverse", std::int64_t{reverse ? 1 : 0}}};
  if (!initial) {
    return downcast(
        ctx.out(op::apply(ctx.builder, ops::linear_recurrence, {factors, terms}, attrs)));
  }
  const auto d = static_cast<std::size_t>(along);
  Shape line = shape;
  line[d] = 1;
  const Expr start = ctx.in(*initial);
  if (start.shape() != line) {
    throw ShapeError(ctx.name() + ": initial must be " + to_string(line) + " for a " +
                         to_string(shape) + " along axis " + std::to_string(axis) + ", got " +
                         to_string(start.shape()),
                     ctx.location());
  }
  // What the first step adds of it is a part of the first b.
  std::vector<std::int64_t> begin(shape.size(), 0), end = shape;
  std::vector<std::int64_t> before(shape.size(), 0), after(shape.size(), 0);
  (reverse ? begin[d] : end[d]) = reverse ? shape[d] - 1 : 1;
  (reverse ? before : after)[d] = shape[d] - 1;
  const Expr first = op::slice(factors, begin, end) * start;
  terms = terms + (shape[d] == 1 ? first : op::pad(first, before, after));
  return downcast(ctx.out(op::apply(ctx.builder, ops::linear_recurrence, {factors, terms}, attrs)));
}

std::vector<Tensor> associative_scan(const CombineMany& combine, std::vector<Tensor> xs, int axis,
                                     bool reverse, Loc loc) {
  const Composite composite("associative_scan", loc);
  if (xs.empty()) throw UserError("associative_scan: expected at least one tensor, got none", loc);
  const std::int64_t size = size_along(xs[0], axis, "associative_scan", loc);
  for (Tensor& x : xs) {
    if (size_along(x, axis, "associative_scan", loc) != size) {
      throw ShapeError("associative_scan: " + to_string(xs[0].shape()) + " and " +
                           to_string(x.shape()) + " differ along axis " + std::to_string(axis),
                       loc);
    }
    if (reverse) x = flip(x, {axis}, loc);
  }
  for (std::int64_t step = 1; step < size; step *= 2) {
    std::vector<Tensor> earlier, later;
    for (const Tensor& x : xs) {
      earlier.push_back(narrow(x, axis, 0, size - step, loc));
      later.push_back(narrow(x, axis, step, size - step, loc));
    }
    const std::vector<Tensor> both = combine(earlier, later);
    if (both.size() != xs.size()) {
      throw UserError("associative_scan: the function returned " + std::to_string(both.size()) +
                          " tensors for " + std::to_string(xs.size()),
                      loc);
    }
    for (std::size_t i = 0; i < xs.size(); ++i) {
      if (both[i].shape() != later[i].shape() || both[i].dtype() != later[i].dtype()) {
        throw ShapeError("associative_scan: the function returned " +
                             std::string(to_string(both[i].dtype())) + to_string(both[i].shape()) +
                             " for two " + std::string(to_string(later[i].dtype())) +
                             to_string(later[i].shape()),
                         loc);
      }
      xs[i] = concat({narrow(xs[i], axis, 0, step, loc), both[i]}, axis, loc);
    }
  }
  for (Tensor& x : xs) {
    if (reverse) x = flip(x, {axis}, loc);
  }
  return xs;
}

Tensor associative_scan(const Combine& combine, Tensor x, int axis, bool reverse, Loc loc) {
  const CombineMany of_one = [&](const std::vector<Tensor>& earlier,
                                 const std::vector<Tensor>& later) {
    return std::vector<Tensor>{combine(earlier[0], later[0])};
  };
  return associative_scan(of_one, std::vector<Tensor>{x}, axis, reverse, loc)[0];
}

// With m the largest element so far: m + log s, s[t] = s[t-1] exp(m[t-1] - m[t]) + exp(x[t] -
// m[t]), a recurrence in which nothing overflows. The sum does not depend on m, so m has no
// gradient.
Tensor logcumsumexp(Tensor x, int axis, Loc loc) {
  const Composite composite("logcumsumexp", loc);
  const Upcast downcast(x);
  demand_float("logcumsumexp", x, loc);
  const double inf = std::numeric_limits<double>::infinity();
  const std::int64_t size = size_along(x, axis, "logcumsumexp", loc);
  const Tensor largest = detach(cummax(x, axis, loc).values);
  const Tensor shift = where(isfinite(largest), largest, 0.0);
  Tensor keep = ones(x.shape(), DType::kF32, loc);
  if (size > 1) {
    Shape one = x.shape();
    one[static_cast<std::size_t>(resolve_axis(axis, one, "logcumsumexp", loc))] = 1;
    const Tensor before = narrow(largest, axis, 0, size - 1, loc);
    // Before the first number that is not -inf there is nothing to keep.
    const Tensor step =
        narrow(shift, axis, 0, size - 1, loc) - narrow(shift, axis, 1, size - 1, loc);
    const Tensor kept = where(eq(before, -inf), 0.0, exp(step));
    keep = concat({ones(one, DType::kF32, loc), kept}, axis, loc);
  }
  const Tensor total = linear_recurrence(keep, exp(x - shift), axis, std::nullopt, false, loc);
  const Tensor nothing = eq(total, 0.0);
  return downcast(where(nothing, -inf, log(where(nothing, 1.0, total)) + shift));
}

Tensor argsort(Tensor x, int axis, bool descending, Loc loc) {
  OpContext ctx("argsort", loc);
  const Expr in = op::bools_to_i32(ctx.in(x));
  const std::int64_t along = resolve_axis(axis, in.shape(), ctx.name(), ctx.location());
  const Attrs attrs = {{"axis", along}, {"descending", std::int64_t{descending ? 1 : 0}}};
  return ctx.out(op::apply(ctx.builder, ops::argsort, {in}, attrs));
}

ValuesAndIndices sort(Tensor x, int axis, bool descending, Loc loc) {
  const Composite composite("sort", loc);
  const Tensor indices = argsort(x, axis, descending, loc);
  return {gather(x, axis, indices, loc), indices};
}

ValuesAndIndices topk(Tensor x, std::int64_t k, int axis, bool largest, Loc loc) {
  const Composite composite("topk", loc);
  const std::int64_t size = size_along(x, axis, "topk", loc);
  if (k < 1 || k > size) {
    throw ShapeError("topk: k must be in [1, " + std::to_string(size) + "] for axis " +
                         std::to_string(axis) + " of " + to_string(x.shape()) + ", got " +
                         std::to_string(k),
                     loc);
  }
  const bool in_rounds =
      k <= kMaxRounds && x.dtype() == DType::kF32 && !Trace::current("topk", loc).exported;
  const Tensor indices = in_rounds ? best_places(x, k, axis, largest, loc)
                         : k <= kMaxSelected && k < size
                             ? selected_places(x, k, axis, largest, loc)
                             : narrow(argsort(x, axis, largest, loc), axis, 0, k, loc);
  return {gather(x, axis, indices, loc), indices};
}

// The last of the running products, whose gradient divides nothing.
Tensor prod(Tensor x, Axes axes, bool keepdim, Loc loc) {
  const Composite composite("prod", loc);
  const Upcast downcast(x);
  const Split split(x, axes, "prod", loc);
  Shape flat = split.rest;
  flat.push_back(split.count);
  const Tensor lines = reshape(permute(x, split.order, loc), flat, loc);
  const Tensor last = narrow(cumprod(lines, -1, loc), -1, split.count - 1, 1, loc);
  return downcast(reshape(last, keepdim ? split.kept : split.rest, loc));
}

Tensor any(Tensor x, Axes axes, bool keepdim, Loc loc) {
  const Composite composite("any", loc);
  return max(truth(x), std::move(axes), keepdim, loc);
}

Tensor all(Tensor x, Axes axes, bool keepdim, Loc loc) {
  const Composite composite("all", loc);
  return min(truth(x), std::move(axes), keepdim, loc);
}

Tensor count_nonzero(Tensor x, Axes axes, bool keepdim, Loc loc) {
  const Composite composite("count_nonzero", loc);
  return sum(truth(x), std::move(axes), keepdim, loc);
}

namespace {

// sqrt(x) whose gradient is 0 where x is 0.
Tensor root(Tensor x) {
  const Tensor nothing = eq(x, 0.0);
  return where(nothing, 0.0, sqrt(where(nothing, 1.0, x)));
}

}  // namespace

Tensor std(Tensor x, Axes axes, int correction, bool keepdim, Loc loc) {
  const Composite composite("std", loc);
  const Upcast downcast(x);
  return downcast(root(var(x, std::move(axes), correction, keepdim, loc)));
}

Tensor norm(Tensor x, double p, Axes axes, bool keepdim, Loc loc) {
  const Composite composite("norm", loc);
  const Upcast downcast(x);
  demand_float("norm", x, loc);
  if (p == 1) return downcast(sum(abs(x), std::move(axes), keepdim, loc));
  if (p == 2) return downcast(root(sum(square(x), std::move(axes), keepdim, loc)));
  if (p == std::numeric_limits<double>::infinity()) {
    return downcast(max(abs(x), std::move(axes), keepdim, loc));
  }
  if (!(p > 0)) throw UserError("norm: p must be more than 0, got " + number_text(p), loc);
  // Of |x| over the largest, so that no power overflows; an infinity stays one, and 0 has the
  // gradient 0.
  const Tensor size = abs(x);
  const Tensor largest = detach(max(size, axes, true, loc));
  const Tensor unit = where(logical_and(gt(largest, 0.0), isfinite(largest)), largest, 1.0);
  const Tensor nothing = eq(size, 0.0);
  const Tensor powers = where(nothing, 0.0, pow(where(nothing, 1.0, size / unit), p));
  const Tensor total = sum(powers, axes, true, loc);
  const Tensor none = eq(total, 0.0);
  const Tensor result = where(none, 0.0, unit * pow(where(none, 1.0, total), 1 / p));
  return downcast(keepdim ? result : sum(result, std::move(axes), false, loc));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
