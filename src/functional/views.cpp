// SPDX-License-Identifier: MIT
// Creation, reductions, views, placement and products of tensors.
#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/pointwise.h"
#include "ops/structured.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

Tensor filled(const char* name, const Shape& shape, double value, DType dtype,
              const SourceLocation& location) {
  OpContext ctx(name, location);
  check_shape(ctx.name(), shape, ctx.location());
  check_number(ctx, value, dtype);
  return ctx.out(op::full(ctx.builder, value, {dtype, shape}));
}

Tensor counted(const char* name, const Shape& shape, int axis, DType dtype,
               const SourceLocation& location) {
  OpContext ctx(name, location);
  check_shape(ctx.name(), shape, ctx.location());
  const std::int64_t d = resolve_axis(axis, shape, ctx.name(), ctx.location());
  return ctx.out(op::iota(ctx.builder, shape, static_cast<int>(d), dtype));
}

template <class T>
Tensor literal(const std::vector<T>& values, const Shape& shape, DType dtype,
               const SourceLocation& location) {
  OpContext ctx("constant", location);
  check_shape(ctx.name(), shape, ctx.location());
  return ctx.out(op::literal(ctx.builder, values, {dtype, shape}));
}

Tensor reduce(const OpDef& def, Tensor x, const std::vector<int>& axes, bool keepdim,
              const SourceLocation& location) {
  OpContext ctx(def.name, location);
  const Expr in = ctx.in(x);
  const std::vector<std::int64_t> list = resolve_axes(axes, in.shape(), ctx.name(), ctx.location());
  const bool extreme_truth =
      in.dtype() == DType::kBool && (&def == &ops::reduce_max || &def == &ops::reduce_min);
  Expr out = op::bools_to_i32(in);
  if (!list.empty()) out = op::apply(ctx.builder, def, {out}, {{"axes", list}});
  if (extreme_truth) out = op::ne(out, 0);
  if (keepdim) {
    Shape kept = in.shape();
    for (const std::int64_t axis : list) kept[static_cast<size_t>(axis)] = 1;
    out = op::reshape(out, kept);
  }
  return ctx.out(out);
}

Tensor arg_extreme(const OpDef& def, Tensor x, std::optional<int> axis, bool keepdim,
                   const SourceLocation& location) {
  if (axis) return reduce(def, x, {*axis}, keepdim, location);
  OpContext ctx(def.name, location);
  const Expr in = ctx.in(x);
  const Expr flat = op::reshape(op::bools_to_i32(in), {numel(in.shape())});
  const Expr out = op::apply(ctx.builder, def, {flat}, {{"axes", std::vector<std::int64_t>{0}}});
  return ctx.out(keepdim ? op::reshape(out, Shape(in.shape().size(), 1)) : out);
}

}  // namespace

Tensor full(const Shape& shape, double value, DType dtype, Loc loc) {
  return filled("full", shape, value, dtype, loc);
}

Tensor zeros(const Shape& shape, DType dtype, Loc loc) {
  return filled("zeros", shape, 0, dtype, loc);
}

Tensor ones(const Shape& shape, DType dtype, Loc loc) {
  return filled("ones", shape, 1, dtype, loc);
}

Tensor arange(std::int64_t n, DType dtype, Loc loc) {
  return counted("arange", {n}, 0, dtype, loc);
}

Tensor iota(const Shape& shape, int axis, DType dtype, Loc loc) {
  return counted("iota", shape, axis, dtype, loc);
}

Tensor constant(const std::vector<float>& values, const Shape& shape, Loc loc) {
  return literal(values, shape, DType::kF32, loc);
}

Tensor constant(const std::vector<std::int32_t>& values, const Shape& shape, Loc loc) {
  return literal(values, shape, DType::kI32, loc);
}

Tensor scalar(const std::string& name, double initial, Loc loc) {
  OpContext ctx("scalar", loc);
  if (name.empty() || name[0] == '_') {
    throw UserError(ctx.name() + ": a name must not be empty or begin with '_', got '" + name + "'",
                    ctx.location());
  }
  return ctx.trace.tensor(ctx.trace.scalar(name, DType::kF32, initial, ctx.location()));
}

Tensor state(const std::string& name, const Shape& shape, double initial, DType dtype, Loc loc) {
  OpContext ctx("state", loc);
  check_shape(ctx.name(), shape, ctx.location());
  check_number(ctx, initial, dtype);
  if (dtype == DType::kF16) {
    throw DtypeError(ctx.name() + ": expected f32, i32, u32 or bool, got f16", ctx.location());
  }
  if (name.empty() || name[0] == '_' || name.starts_with("optim.")) {
    throw UserError(
        ctx.name() + ": a name must not be empty or begin with '_' or 'optim.', got '" + name + "'",
        ctx.location());
  }
  if (ctx.trace.graph.find_leaf(ops::state, name) != kNoValue) {
    throw UserError(ctx.name() + ": state '" + name + "' already exists", ctx.location());
  }
  return ctx.out(op::apply(ctx.builder, ops::state, {},
                           {{"name", name},
                            {"shape", shape},
                            {"dtype", static_cast<std::int64_t>(dtype)},
                            {"init", initial}}));
}

Tensor capture(const std::string& name, Tensor x, Loc loc) {
  OpContext ctx("capture", loc);
  const ValueId id = ctx.in(x).id;
  if (name.empty()) throw UserError("capture: the name is empty", ctx.location());
  if (!ctx.trace.captures.emplace(name, id).second)
    throw UserError("capture: capture '" + name + "' already exists", ctx.location());
  return x;
}

Tensor print(Tensor x, const std::string& name, Loc loc) {
  OpContext ctx("print", loc);
  const ValueId id = ctx.in(x).id;
  if (name.empty()) throw UserError("print: the name is empty", ctx.location());
  if (!ctx.trace.captures.emplace(name, id).second)
    throw UserError("print: the name '" + name + "' is taken by a capture", ctx.location());
  ctx.trace.printed.push_back(name);
  return x;
}

void set_state(const std::string& name, Tensor value, Loc loc) {
  OpContext ctx("set_state", loc);
  const ValueId leaf = ctx.trace.graph.find_leaf(ops::state, name);
  if (leaf == kNoValue)
    throw UserError(ctx.name() + ": unknown state '" + name + "'", ctx.location());
  const Type type = ctx.trace.graph[leaf].type;
  const Expr to = ctx.in(cast_if_autocast(value, type.dtype, ctx.location()));
  if (to.type() != type) {
    throw ShapeError(
        ctx.name() + ": '" + name + "' is " + to_string(type) + ", got " + to_string(to.type()),
        ctx.location());
  }
  for (const GraphUpdate& update : ctx.trace.graph.updates) {
    if (update.leaf == leaf) {
      throw UserError(ctx.name() + ": '" + name + "' is set twice", ctx.location());
    }
  }
  ctx.trace.graph.updates.push_back({leaf, to.id});
}

Tensor sum(Tensor x, Axes axes, bool keepdim, Loc loc) {
  return reduce(ops::reduce_sum, x, axes.list, keepdim, loc);
}

Tensor max(Tensor x, Axes axes, bool keepdim, Loc loc) {
  return reduce(ops::reduce_max, x, axes.list, keepdim, loc);
}

Tensor min(Tensor x, Axes axes, bool keepdim, Loc loc) {
  return reduce(ops::reduce_min, x, axes.list, keepdim, loc);
}

Tensor argmax(Tensor x, std::optional<int> axis, bool keepdim, Loc loc) {
  return arg_extreme(ops::argmax, x, axis, keepdim, loc);
}

Tensor argmin(Tensor x, std::optional<int> axis, bool keepdim, Loc loc) {
  return arg_extreme(ops::argmin, x, axis, keepdim, loc);
}

Tensor reshape(Tensor x, const Shape& shape, Loc loc) {
  OpContext ctx("reshape", loc);
  const Expr in = ctx.in(x);
  Shape target = shape;
  const auto unknown = std::find(target.begin(), target.end(), -1);
  if (unknown != target.end()) {
    *unknown = 1;
    const std::int64_t rest = numel(target);
    const bool twice = std::count(target.begin(), target.end(), -1) > 0;
    if (twice || rest == 0 || numel(in.shape()) % rest != 0) {
      throw ShapeError(
          ctx.name() + ": cannot make " + to_string(shape) + " from " + to_string(in.shape()),
          ctx.location());
    }
    *unknown = numel(in.shape()) / rest;
  }
  check_shape(ctx.name(), target, ctx.location());
  return ctx.out(op::reshape(in, target));
}

Tensor permute(Tensor x, const std::vector<int>& axes, Loc loc) {
  OpContext ctx("permute", loc);
  const Expr in = ctx.in(x);
  std::vector<std::int64_t> list;
  for (const int axis : axes)
    list.push_back(resolve_axis(axis, in.shape(), ctx.name(), ctx.location()));
  return ctx.out(op::permute(in, list));
}

Tensor transpose(Tensor x, int a, int b, Loc loc) {
  OpContext ctx("transpose", loc);
  const Expr in = ctx.in(x);
  std::vector<std::int64_t> list(in.shape().size());
  std::iota(list.begin(), list.end(), 0);
  std::swap(list[static_cast<size_t>(resolve_axis(a, in.shape(), ctx.name(), ctx.location()))],
            list[static_cast<size_t>(resolve_axis(b, in.shape(), ctx.name(), ctx.location()))]);
  return ctx.out(op::permute(in, list));
}

Tensor broadcast_to(Tensor x, const Shape& shape, Loc loc) {
  OpContext ctx("broadcast_to", loc);
  return ctx.out(op::broadcast(ctx.in(x), shape));
}

Tensor narrow(Tensor x, int axis, std::int64_t start, std::int64_t length, Loc loc) {
  OpContext ctx("narrow", loc);
  const Expr in = ctx.in(x);
  const auto d = static_cast<size_t>(resolve_axis(axis, in.shape(), ctx.name(), ctx.location()));
  std::vector<std::int64_t> from(in.shape().size(), 0), to = in.shape();
  if (start < 0 || length < 1 || start > to[d] || length > to[d] - start) {
    throw ShapeError(ctx.name() + ": start " + std::to_string(start) + " and length " +
                         std::to_string(length) + " do not fit axis " + std::to_string(axis) +
                         " of " + to_string(in.shape()),
                     ctx.location());
  }
  from[d] = start;
  to[d] = start + length;
  return ctx.out(op::slice(in, from, to));
}

namespace {

// The range of an axis that an index selects.
struct AxisRange {
  std::int64_t start, stop, step;
};

AxisRange range_of(const OpContext& ctx, const Index& index, std::size_t axis, const Shape& shape) {
  const std::int64_t size = shape[axis];
  const auto where = [&] { return " of axis " + std::to_string(axis) + " of " + to_string(shape); };
  if (index.kind == Index::Kind::kElement) {
    const std::int64_t at = index.element < 0 ? index.element + size : index.element;
    if (at < 0 || at >= size) {
      throw ShapeError(
          ctx.name() + ": element " + std::to_string(index.element) + where() + " is out of range",
          ctx.location());
    }
    return {at, at + 1, 1};
  }
  const auto& [first, last, step] = index.slice;
  const auto clamped = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const AxisRange range{clamped(first.value_or(0)), clamped(last.value_or(size)), step};
  if (step < 1) {
    throw ShapeError(ctx.name() + ": expected a step of at least 1, got " + std::to_string(step),
                     ctx.location());
  }
  if (range.start >= range.stop) {
    throw ShapeError(ctx.name() + ": the slice [" + std::to_string(range.start) + ", " +
                         std::to_string(range.stop) + ")" + where() + " is empty",
                     ctx.location());
  }
  return range;
}

}  // namespace

Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  using Kind = Index::Kind;
  OpContext ctx("index", indices.size() == 0 ? Loc() : indices.begin()->location);
  Expr out = ctx.in(*this);
  const Shape shape = out.shape();
  const auto count = [&](auto... kinds) {
    return static_cast<std::size_t>(
        std::count_if(indices.begin(), indices.end(),
                      [&](const Index& each) { return ((each.kind == kinds) || ...); }));
  };
  const std::size_t taken = count(Kind::kElement, Kind::kSlice);
  if (taken > shape.size()) {
    throw ShapeError(ctx.name() + ": " + std::to_string(taken) + " indices for the " +
                         std::to_string(shape.size()) + " axes of " + to_string(shape),
                     ctx.location());
  }
  if (count(Kind::kEllipsis) > 1)
    throw ShapeError(ctx.name() + ": expected at most one kEllipsis", ctx.location());

  std::vector<std::int64_t> start(shape.size(), 0), stop = shape;
  std::vector<std::int64_t> steps(shape.size(), 1);
  Shape result;
  std::size_t axis = 0;
  const auto keep_until = [&](std::size_t last) {
    while (axis < last) result.push_back(shape[axis++]);
  };
  for (const Index& index : indices) {
    if (index.kind == Kind::kNewAxis) {
      result.push_back(1);
    } else if (index.kind == Kind::kEllipsis) {
      keep_until(axis + shape.size() - taken);
    } else {
      const AxisRange range = range_of(ctx, index, axis, shape);
      start[axis] = range.start, stop[axis] = range.stop, steps[axis] = range.step;
      const std::int64_t size = (range.stop - range.start - 1) / range.step + 1;
      stop[axis] = range.start + (size - 1) * range.step + 1;
      if (index.kind == Kind::kSlice) result.push_back(size);
      ++axis;
    }
  }
  keep_until(shape.size());
  if (start != std::vector<std::int64_t>(shape.size(), 0) || stop != shape)
    out = op::slice(out, start, stop);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    // A strided slice is an unfold with windows of one element. The axis that it adds is dropped
    // below.
    if (steps[i] > 1) out = op::unfold(out, static_cast<int>(i), 1, steps[i], 1);
  }
  return ctx.out(out.shape() == result ? out : op::reshape(out, result));
}

Tensor pad(Tensor x, const std::vector<std::int64_t>& amounts, double value, Loc loc) {
  OpContext ctx("pad", loc);
  const Expr in = ctx.in(x);
  const std::size_t rank = in.shape().size();
  if (amounts.size() % 2 != 0 || amounts.size() / 2 > rank) {
    throw ShapeError(ctx.name() + ": expected pairs of amounts for the last axes of " +
                         to_string(in.shape()) + ", got " + std::to_string(amounts.size()) +
                         " numbers",
                     ctx.location());
  }
  std::vector<std::int64_t> before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    before[rank - 1 - i] = amounts[2 * i];
    after[rank - 1 - i] = amounts[2 * i + 1];
  }
  const Expr padded = op::pad(in, before, after);
  if (value == 0) return ctx.out(padded);
  check_number(ctx, value, in.dtype());
  const Expr inside = op::pad(op::full(ctx.builder, 1, {DType::kBool, in.shape()}), before, after);
  return ctx.out(op::where(inside, padded, op::full(ctx.builder, value, padded.type())));
}

Tensor flip(Tensor x, Axes axes, Loc loc) {
  OpContext ctx("flip", loc);
  const Expr in = ctx.in(x);
  return ctx.out(op::flip(in, resolve_axes(axes.list, in.shape(), ctx.name(), ctx.location())));
}

Tensor unfold(Tensor x, int axis, std::int64_t size, std::int64_t step, std::int64_t dilation,
              Loc loc) {
  OpContext ctx("unfold", loc);
  const Expr in = ctx.in(x);
  const std::int64_t d = resolve_axis(axis, in.shape(), ctx.name(), ctx.location());
  return ctx.out(op::unfold(in, static_cast<int>(d), size, step, dilation));
}

Tensor unsqueeze(Tensor x, int axis, Loc loc) {
  OpContext ctx("unsqueeze", loc);
  const Expr in = ctx.in(x);
  Shape shape = in.shape();
  const int rank = static_cast<int>(shape.size());
  if (axis < -rank - 1 || axis > rank) {
    throw ShapeError(ctx.name() + ": a new axis of " + to_string(shape) + " must be between " +
                         std::to_string(-rank - 1) + " and " + std::to_string(rank) + ", got " +
                         std::to_string(axis),
                     ctx.location());
  }
  shape.insert(shape.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
  return ctx.out(op::reshape(in, shape));
}

Tensor squeeze(Tensor x, int axis, Loc loc) {
  OpContext ctx("squeeze", loc);
  const Expr in = ctx.in(x);
  Shape shape = in.shape();
  const std::int64_t at = resolve_axis(axis, shape, ctx.name(), ctx.location());
  if (shape[static_cast<size_t>(at)] != 1) {
    throw ShapeError(ctx.name() + ": axis " + std::to_string(axis) + " of " + to_string(shape) +
                         " does not have size 1",
                     ctx.location());
  }
  shape.erase(shape.begin() + at);
  return ctx.out(op::reshape(in, shape));
}

Tensor flatten(Tensor x, int first, int last, Loc loc) {
  OpContext ctx("flatten", loc);
  const Expr in = ctx.in(x);
  const Shape shape = in.shape();
  if (shape.empty()) return ctx.out(op::reshape(in, {1}));
  const std::int64_t from = resolve_axis(first, shape, ctx.name(), ctx.location());
  const std::int64_t to = resolve_axis(last, shape, ctx.name(), ctx.location());
  if (from > to)
    throw ShapeError(ctx.name() + ": the first axis is after the last", ctx.location());
  Shape flat(shape.begin(), shape.begin() + from);
  flat.push_back(std::accumulate(shape.begin() + from, shape.begin() + to + 1, std::int64_t{1},
                                 std::multiplies<>()));
  flat.insert(flat.end(), shape.begin() + to + 1, shape.end());
  return ctx.out(op::reshape(in, flat));
}

Tensor concat(const std::vector<Tensor>& parts, int axis, Loc loc) {
  OpContext ctx("concat", loc);
  if (parts.empty())
    throw ShapeError(ctx.name() + ": expected at least one tensor", ctx.location());
  std::vector<Expr> inputs;
  const bool wide = std::any_of(parts.begin(), parts.end(), [&](const Tensor& part) {
    return ctx.in(part).dtype() == DType::kF32;
  });
  for (const Tensor& part : parts)
    inputs.push_back(ctx.in(wide ? cast_if_autocast(part, DType::kF32, ctx.location()) : part));
  const std::int64_t d = resolve_axis(axis, inputs[0].shape(), ctx.name(), ctx.location());
  return ctx.out(inputs.size() == 1 ? inputs[0] : op::concat(inputs, static_cast<int>(d)));
}

Tensor stack(const std::vector<Tensor>& parts, int axis, Loc loc) {
  const Composite composite("stack", loc);
  std::vector<Tensor> grown;
  for (const Tensor& part : parts) grown.push_back(unsqueeze(part, axis, loc));
  return concat(grown, axis, loc);
}

Tensor gather(Tensor x, int axis, Tensor index, Loc loc) {
  OpContext ctx("gather", loc);
  const Expr in = ctx.in(x);
  const std::int64_t d = resolve_axis(axis, in.shape(), ctx.name(), ctx.location());
  return ctx.out(op::gather(in, ctx.in(index), static_cast<int>(d)));
}

Tensor embedding(Tensor index, Tensor table, Loc loc) {
  const Composite composite("embedding", loc);
  OpContext ctx("embedding", loc);
  const Expr rows = ctx.in(table), at = ctx.in(index);
  if (rows.shape().size() != 2) {
    throw ShapeError(ctx.name() + ": expected a table [V, D], got " + to_string(rows.shape()),
                     ctx.location());
  }
  const std::int64_t count = numel(at.shape()), size = rows.shape()[1];
  const Expr wide = op::broadcast(op::reshape(at, {count, 1}), {count, size});
  Shape shape = at.shape();
  shape.push_back(size);
  return ctx.out(op::reshape(op::gather(rows, wide, 0), shape));
}

Tensor scatter_add(Tensor x, int axis, Tensor index, Tensor source, Loc loc) {
  const Upcast downcast(std::vector<Tensor*>{&x, &source});
  OpContext ctx("scatter_add", loc);
  const Expr in = ctx.in(x);
  const std::int64_t d = resolve_axis(axis, in.shape(), ctx.name(), ctx.location());
  const Expr added = op::scatter_add(ctx.in(source), ctx.in(index), static_cast<int>(d),
                                     in.shape()[static_cast<size_t>(d)]);
  if (added.shape() != in.shape()) {
    throw ShapeError(ctx.name() + ": x " + to_string(in.shape()) + " and source " +
                         to_string(ctx.in(source).shape()) + " differ on axes other than " +
                         std::to_string(axis),
                     ctx.location());
  }
  return downcast(ctx.out(in + added));
}

Tensor index_update(Tensor x, int axis, Tensor start, Tensor update, Loc loc) {
  OpContext ctx("index_update", loc);
  const Expr in = ctx.in(x), fresh = ctx.in(update);
  Expr first = ctx.in(start);
  const std::int64_t d = resolve_axis(axis, in.shape(), ctx.name(), ctx.location());
  if (first.dtype() == DType::kU32) {
    constexpr double kMaxIndex = std::numeric_limits<std::int32_t>::max();
    first = op::cast(op::minimum(first, kMaxIndex), DType::kI32);
  }
  if (first.dtype() != DType::kI32) {
    throw DtypeError(ctx.name() + ": expected an i32 or u32 start, got " + to_string(first.type()),
                     ctx.location());
  }
  Shape lines = in.shape();
  lines[static_cast<size_t>(d)] = 1;
  const Shape given = first.shape();
  bool fits = given.size() <= lines.size();
  for (std::size_t k = 1; fits && k <= given.size(); ++k) {
    const std::int64_t size = given[given.size() - k];
    fits = size == 1 || size == lines[lines.size() - k];
  }
  if (!fits) {
    throw ShapeError(ctx.name() + ": expected a start that broadcasts to " + to_string(lines) +
                         ", got " + to_string(given),
                     ctx.location());
  }
  return ctx.out(op::index_update(in, fresh, op::broadcast(first, lines), static_cast<int>(d)));
}

namespace {

// Treats a vector as a row on the left and as a column on the right, and removes its axis from the
// result.
Tensor product_with_vector(const OpContext& ctx, Tensor a, Tensor b, Loc loc) {
  const bool row = a.rank(loc) == 1, column = b.rank(loc) == 1;
  const std::int64_t inner = b.size(column ? 0 : -2, loc);
  if (a.size(-1, loc) != inner) {
    throw ShapeError(ctx.name() + ": inner sizes differ: a " + to_string(a.shape(loc)) + ", b " +
                         to_string(b.shape(loc)),
                     ctx.location());
  }
  const Composite composite("matmul", loc);
  Tensor y = matmul(row ? unsqueeze(a, 0, loc) : a, column ? unsqueeze(b, 1, loc) : b, loc);
  if (column) y = squeeze(y, -1, loc);
  return row ? squeeze(y, -1 - (column ? 0 : 1), loc) : y;
}

}  // namespace

Tensor matmul(Tensor a, Tensor b, Loc loc) {
  if (autocasts() && register_dtype(a.dtype(loc)) == DType::kF32) {
    const Composite composite("matmul", loc);
    const MixedProduct downcast({&a, &b}, true);
    return downcast(matmul(a, b, loc));
  }
  OpContext ctx("matmul", loc);
  Expr left = ctx.in(a), right = ctx.in(b);
  Shape ls = left.shape(), rs = right.shape();
  if (ls.empty() || rs.empty()) {
    throw ShapeError(ctx.name() + ": expected at least one axis, got a " + to_string(ls) + ", b " +
                         to_string(rs),
                     ctx.location());
  }
  if (ls.size() == 1 || rs.size() == 1) return product_with_vector(ctx, a, b, loc);
  const std::int64_t m = ls[ls.size() - 2], k = ls.back(), n = rs.back();
  if (rs[rs.size() - 2] != k) {
    throw ShapeError(
        ctx.name() + ": inner sizes differ: a " + to_string(ls) + ", b " + to_string(rs),
        ctx.location());
  }
  // Flatten to one product over all rows. No batch is needed, and db is a single product too.
  if (rs.size() == 2 && ls.size() > 2) {
    Shape out = ls;
    out.back() = n;
    const Expr flat = op::reshape(left, {numel(ls) / k, k});
    return ctx.out(op::reshape(op::matmul(flat, right), out));
  }
  const Shape batch = broadcast_shapes({ls.begin(), ls.end() - 2}, {rs.begin(), rs.end() - 2},
                                       ctx.name(), ctx.location());
  Shape left_shape = batch, right_shape = batch;
  left_shape.insert(left_shape.end(), {m, k});
  right_shape.insert(right_shape.end(), {k, n});
  return ctx.out(op::matmul(op::broadcast(left, left_shape), op::broadcast(right, right_shape)));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
