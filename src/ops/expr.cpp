// SPDX-License-Identifier: MIT
// Structured ops as formulas.
#include "ops/expr.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "ops/structured.h"

namespace tensorgrad::op {
namespace {

Attrs typed(DType dtype, const Shape& shape) {
  return {{"dtype", static_cast<std::int64_t>(dtype)}, {"shape", shape}};
}

Builder& builder_of(const Ex& x) {
  CHECK(x.builder != nullptr && x.present());
  return *x.builder;
}

}  // namespace

Ex apply(Builder& builder, const OpDef& def, const std::vector<Ex>& inputs, Attrs attrs) {
  std::vector<ValueId> ids;
  ids.reserve(inputs.size());
  for (const Ex& input : inputs) ids.push_back(input.id);
  return {&builder, builder.graph.add(def, std::move(ids), std::move(attrs), builder.site,
                                      builder.origin, builder.name)};
}

Ex constant(Builder& builder, double value, DType dtype) {
  return apply(builder, ops::constant, {},
               {{"dtype", static_cast<std::int64_t>(dtype)}, {"value", value}});
}

Ex full(Builder& builder, double value, const Type& type) {
  return broadcast(constant(builder, value, type.dtype), type.shape);
}

Ex full_like(Ex x, double value) { return full(builder_of(x), value, x.type()); }

Ex iota(Builder& builder, const Shape& shape, int axis, DType dtype) {
  Attrs attrs = typed(dtype, shape);
  attrs.set("axis", static_cast<std::int64_t>(axis));
  return apply(builder, ops::iota, {}, attrs);
}

Ex reshape(Ex x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return apply(builder_of(x), ops::reshape, {x}, {{"shape", shape}});
}

Ex permute(Ex x, const std::vector<std::int64_t>& axes) {
  return apply(builder_of(x), ops::permute, {x}, {{"axes", axes}});
}

Ex broadcast(Ex x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return apply(builder_of(x), ops::broadcast, {x}, {{"shape", shape}});
}

Ex slice(Ex x, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop) {
  if (stop == x.shape() && std::all_of(start.begin(), start.end(), [](auto s) { return s == 0; })) {
    return x;
  }
  return apply(builder_of(x), ops::slice, {x}, {{"start", start}, {"stop", stop}});
}

Ex pad(Ex x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after) {
  return apply(builder_of(x), ops::pad, {x}, {{"before", before}, {"after", after}});
}

Ex flip(Ex x, const std::vector<std::int64_t>& axes) {
  return apply(builder_of(x), ops::flip, {x}, {{"axes", axes}});
}

Ex sum(Ex x, const std::vector<std::int64_t>& axes) {
  if (axes.empty()) return x;
  return apply(builder_of(x), ops::reduce_sum, {x}, {{"axes", axes}});
}

Ex concat(const std::vector<Ex>& parts, int axis) {
  CHECK(!parts.empty());
  return apply(builder_of(parts[0]), ops::concat, parts,
               {{"axis", static_cast<std::int64_t>(axis)}});
}

Ex gather(Ex x, Ex index, int axis) {
  return apply(builder_of(x), ops::gather, {x, index}, {{"axis", static_cast<std::int64_t>(axis)}});
}

Ex scatter_add(Ex source, Ex index, int axis, std::int64_t size) {
  return apply(builder_of(source), ops::scatter_add, {source, index},
               {{"axis", static_cast<std::int64_t>(axis)}, {"size", size}});
}

Ex matmul(Ex a, Ex b) { return apply(builder_of(a), ops::matmul, {a, b}); }

Ex transpose(Ex x) {
  std::vector<std::int64_t> axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return permute(x, axes);
}

Ex sum_to(Ex x, Shape shape) {
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

Ex expand_reduced(Ex reduced, const std::vector<std::int64_t>& axes, const Shape& shape) {
  Shape kept = shape;
  for (const std::int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  return broadcast(reshape(reduced, kept), shape);
}

}  // namespace tensorgrad::op
