// SPDX-License-Identifier: MIT
// Structured ops as functions of Expr.
#include "ops/expr.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "kernel/scalar_math.h"
#include "ops/pointwise.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace op {
namespace {

Attrs typed(DType dtype, const Shape& shape) {
  return {{"dtype", static_cast<std::int64_t>(dtype)}, {"shape", shape}};
}

Builder& builder_of(const Expr& x) {
  CHECK(x.builder != nullptr && x.present());
  return *x.builder;
}

}  // namespace

bool takes_f16(const OpDef& def) {
  switch (def.kind) {
    case OpKind::kLeaf:
    case OpKind::kView:
    case OpKind::kConcat:
    case OpKind::kGather:
    case OpKind::kIndexUpdate: return true;
    case OpKind::kPointwise:
      return &def == &ops::cast || &def == &ops::where || &def == &ops::detach;
    default: return false;
  }
}

bool upcast(std::vector<Expr>& values) {
  bool any = false, all = true;
  for (Expr& value : values) {
    const DType dtype = value.dtype();
    if (dtype == DType::kF16) value = cast(value, DType::kF32);
    any |= dtype == DType::kF16;
    all &= dtype != DType::kF32;
  }
  return any && all;
}

Expr downcast(Expr result, bool half) {
  return half && result.dtype() == DType::kF32 ? cast(result, DType::kF16) : result;
}

Expr apply(Builder& builder, const OpDef& def, const std::vector<Expr>& inputs, Attrs attrs) {
  std::vector<Expr> wide = inputs;
  const bool half = !takes_f16(def) && upcast(wide);
  std::vector<ValueId> ids;
  ids.reserve(wide.size());
  for (const Expr& input : wide) ids.push_back(input.id);
  const ValueId id = builder.graph.add(def, std::move(ids), std::move(attrs), builder.location,
                                       builder.origin, builder.name);
  return downcast({&builder, id}, half);
}

Expr constant(Builder& builder, double value, DType dtype) {
  if (dtype == DType::kF16) value = scalar_math::round_to_f16({value}).v;
  return apply(builder, ops::constant, {},
               {{"dtype", static_cast<std::int64_t>(dtype)}, {"value", value}});
}

Expr full(Builder& builder, double value, const Type& type) {
  return broadcast(constant(builder, value, type.dtype), type.shape);
}

Expr literal(Builder& builder, std::vector<std::int64_t> words, const Type& type) {
  CHECK(type.dtype != DType::kF16, "a literal of f16");
  Attrs attrs = typed(type.dtype, type.shape);
  attrs.set("bits", std::move(words));
  return apply(builder, ops::literal, {}, std::move(attrs));
}

Expr full_like(Expr x, double value) { return full(builder_of(x), value, x.type()); }

Expr iota(Builder& builder, const Shape& shape, int axis, DType dtype) {
  if (dtype == DType::kF16) return cast(iota(builder, shape, axis, DType::kF32), dtype);
  Attrs attrs = typed(dtype, shape);
  attrs.set("axis", static_cast<std::int64_t>(axis));
  return apply(builder, ops::iota, {}, attrs);
}

Expr reshape(Expr x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return apply(builder_of(x), ops::reshape, {x}, {{"shape", shape}});
}

Expr permute(Expr x, const std::vector<std::int64_t>& axes) {
  return apply(builder_of(x), ops::permute, {x}, {{"axes", axes}});
}

Expr broadcast(Expr x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return apply(builder_of(x), ops::broadcast, {x}, {{"shape", shape}});
}

Expr slice(Expr x, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop) {
  if (stop == x.shape() && std::all_of(start.begin(), start.end(), [](auto s) { return s == 0; })) {
    return x;
  }
  return apply(builder_of(x), ops::slice, {x}, {{"start", start}, {"stop", stop}});
}

Expr pad(Expr x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after) {
  return apply(builder_of(x), ops::pad, {x}, {{"before", before}, {"after", after}});
}

Expr flip(Expr x, const std::vector<std::int64_t>& axes) {
  return apply(builder_of(x), ops::flip, {x}, {{"axes", axes}});
}

Expr sum(Expr x, const std::vector<std::int64_t>& axes) {
  if (axes.empty()) return x;
  return apply(builder_of(x), ops::reduce_sum, {x}, {{"axes", axes}});
}

Expr unfold(Expr x, int axis, std::int64_t size, std::int64_t step, std::int64_t dilation) {
  return apply(builder_of(x), ops::unfold, {x},
               {{"axis", static_cast<std::int64_t>(axis)},
                {"size", size},
                {"step", step},
                {"dilation", dilation}});
}

Expr dilate(Expr x, int axis, std::int64_t step) {
  if (step == 1) return x;
  const auto a = static_cast<std::size_t>(axis);
  const Shape shape = x.shape();
  Shape split = shape, whole = shape;
  split.insert(split.begin() + axis + 1, 1);
  std::vector<std::int64_t> none(split.size(), 0), after = none;
  after[a + 1] = step - 1;
  whole[a] *= step;
  const Expr spread = reshape(pad(reshape(x, split), none, after), whole);
  whole[a] -= step - 1;
  return slice(spread, std::vector<std::int64_t>(shape.size(), 0), whole);
}

// Row j of [size, width] holds element j of each window, at column reach + n * step. Rereading the
// rows with a pitch of width - dilation shifts row j right by j * dilation. All elements that are
// added to one result are then in the same column.
Expr fold(Expr windows, int axis, std::int64_t length, std::int64_t step, std::int64_t dilation) {
  const auto rank = static_cast<std::int64_t>(windows.shape().size());
  const std::int64_t size = windows.shape().back(), reach = (size - 1) * dilation;
  std::vector<std::int64_t> order, back(static_cast<std::size_t>(rank) - 1);
  for (std::int64_t d = 0; d < rank - 1; ++d) {
    if (d == axis) continue;
    back[static_cast<std::size_t>(d)] = static_cast<std::int64_t>(order.size());
    order.push_back(d);
  }
  back[static_cast<std::size_t>(axis)] = rank - 2;
  order.insert(order.end(), {rank - 1, axis});
  const Expr rows = dilate(permute(windows, order), static_cast<int>(rank) - 1, step);
  Shape shape = rows.shape();  // [.., size, M]
  const std::size_t last = shape.size() - 1;
  std::vector<std::int64_t> before(shape.size(), 0), after = before;
  before[last] = reach;
  after[last] = length - shape[last];
  const std::int64_t width = reach + length, pitch = width - (size > 1 ? dilation : 0);
  Shape flat(shape.begin(), shape.end() - 2);
  flat.push_back(size * width);
  std::vector<std::int64_t> start(flat.size(), 0);
  start.back() = reach;
  Shape stop = flat;
  stop.back() = reach + size * pitch;
  shape[last] = pitch;
  const Expr slanted = reshape(slice(reshape(pad(rows, before, after), flat), start, stop), shape);
  shape[last] = length;
  const Expr columns = slice(slanted, std::vector<std::int64_t>(shape.size(), 0), shape);
  return permute(sum(columns, {rank - 2}), back);
}

Expr concat(const std::vector<Expr>& parts, int axis) {
  CHECK(!parts.empty());
  return apply(builder_of(parts[0]), ops::concat, parts,
               {{"axis", static_cast<std::int64_t>(axis)}});
}

Expr gather(Expr x, Expr index, int axis) {
  return apply(builder_of(x), ops::gather, {x, index}, {{"axis", static_cast<std::int64_t>(axis)}});
}

Expr scatter_add(Expr source, Expr index, int axis, std::int64_t size) {
  return apply(builder_of(source), ops::scatter_add, {source, index},
               {{"axis", static_cast<std::int64_t>(axis)}, {"size", size}});
}

Expr index_update(Expr x, Expr update, Expr start, int axis) {
  return apply(builder_of(x), ops::index_update, {x, update, start},
               {{"axis", static_cast<std::int64_t>(axis)}});
}

namespace {

// Number of products in one sum; larger ones exceed the size of a tensor.
constexpr std::int64_t kMaxExactProducts = std::int64_t{1} << 30;

// out[.., m, n] = sum over k of a[.., m, k] * b[.., k, n], modulo 2^32. Uses pointwise products and
// a sum, because the kernels for matrix products only support floats.
Expr integer_matmul(Expr a, Expr b) {
  Shape rows = a.shape(), columns = b.shape();
  const std::size_t last = rows.size() - 1;
  const std::int64_t k = rows[last], n = columns[last];
  Shape wide = rows;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(last), n);
  const std::int64_t part = std::max<std::int64_t>(1, kMaxExactProducts / (numel(wide) / k));
  Expr total;
  for (std::int64_t first = 0; first < k; first += part) {
    std::vector<std::int64_t> a_start(rows.size(), 0), a_stop = rows;
    std::vector<std::int64_t> b_start(rows.size(), 0), b_stop = columns;
    a_start[last] = b_start[last - 1] = first;
    a_stop[last] = b_stop[last - 1] = wide[last + 1] = std::min(k, first + part);
    wide[last + 1] -= first;
    Shape of_rows = wide, of_columns = wide;
    of_rows[last] = of_columns[last - 1] = 1;
    const Expr left = broadcast(reshape(slice(a, a_start, a_stop), of_rows), wide);
    const Expr right = broadcast(reshape(transpose(slice(b, b_start, b_stop)), of_columns), wide);
    const Expr sums = sum(left * right, {static_cast<std::int64_t>(last) + 1});
    total = total.builder == nullptr ? sums : total + sums;
  }
  return total;
}

}  // namespace

Expr matmul(Expr a, Expr b) {
  const bool whole = a.dtype() == DType::kI32 || a.dtype() == DType::kU32;
  if (whole && a.dtype() == b.dtype()) return integer_matmul(a, b);
  return apply(builder_of(a), ops::matmul, {a, b});
}

Expr matmul_in_parts(Expr a, Expr b, std::int64_t depth) {
  return apply(builder_of(a), ops::matmul, {a, b}, {{ops::kPartDepth, depth}});
}

Expr transpose(Expr x) {
  std::vector<std::int64_t> axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return permute(x, axes);
}

Expr bools_to_i32(Expr x) { return x.dtype() == DType::kBool ? cast(x, DType::kI32) : x; }

Expr sum_to(Expr x, Shape shape) {
  const Shape from = x.shape();
  if (from == shape) return x;
  const std::size_t added = from.size() - shape.size();
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (d < added || (shape[d - added] == 1 && from[d] != 1)) {
      axes.push_back(static_cast<std::int64_t>(d));
    }
  }
  return reshape(sum(x, axes), shape);
}

Expr expand_reduced(Expr reduced, const std::vector<std::int64_t>& axes, const Shape& shape) {
  Shape kept = shape;
  for (const std::int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  return broadcast(reshape(reduced, kept), shape);
}

}  // namespace op
}  // namespace tensorgrad::inline TENSORGRAD_ABI
