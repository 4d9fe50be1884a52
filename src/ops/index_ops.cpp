// SPDX-License-Identifier: MIT
// Ops that join or index tensors: concat, pack, gather, its adjoint scatter_add, and index_update.
#include <algorithm>

#include "ops/pointwise.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

Type infer_concat(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t axis = attrs.integer("axis");
  Type out = in[0];
  check_axis(axis, out.shape);
  const auto a = static_cast<size_t>(axis);
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in[i].dtype != out.dtype) {
      dtype_error("parts have different types: " + to_string(in[0]) + " and " + to_string(in[i]));
    }
    if (in[i].shape.size() != out.shape.size() ||
        without_axes(in[i].shape, {axis}) != without_axes(out.shape, {axis})) {
      shape_error("parts differ on axes other than " + std::to_string(axis) + ": " +
                  to_string(in[0].shape) + " and " + to_string(in[i].shape));
    }
    out.shape[a] += in[i].shape[a];
  }
  return out;
}

void eval_concat(const EvalContext& ctx, RefTensor& out) {
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  const AxisSplit whole = split_at(out.type.shape, axis);
  for (std::int64_t p = 0; p < whole.pre; ++p) {
    for (const RefTensor* part : ctx.inputs) {
      const AxisSplit split = split_at(part->type.shape, axis);
      const auto from = part->data.begin() + p * split.size * split.post;
      out.data.insert(out.data.end(), from, from + split.size * split.post);
    }
  }
}

std::vector<ValueId> grad_concat(GradContext& ctx) {
  const auto axis = static_cast<size_t>(ctx.self().attrs.integer("axis"));
  const std::vector<ValueId> inputs = ctx.self().inputs;
  std::vector<ValueId> grads;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape shape = ctx.in(i).shape();
    std::vector<std::int64_t> start(shape.size(), 0), stop = shape;
    start[axis] = at;
    at += shape[axis];
    stop[axis] = at;
    grads.push_back(op::slice(ctx.dy(), start, stop).id);
  }
  return grads;
}

// attrs: offsets (one per input, in elements), size. Elements that no input covers are zero.
Type infer_pack(std::span<const Type> in, const Attrs& attrs) {
  const auto& offsets = attrs.list("offsets");
  const std::int64_t size = attrs.integer("size");
  if (offsets.size() != in.size()) shape_error("expected one offset for each part");
  std::int64_t end = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].dtype != DType::kF32) dtype_error("expected f32, got " + to_string(in[i]));
    if (offsets[i] < end) shape_error("parts overlap");
    end = offsets[i] + numel(in[i].shape);
  }
  if (end > size)
    shape_error("parts end at " + std::to_string(end) + ", but the size is " +
                std::to_string(size));
  return {DType::kF32, {size}};
}

void eval_pack(const EvalContext& ctx, RefTensor& out) {
  out.data.assign(static_cast<size_t>(numel(out.type.shape)), 0);
  for (std::size_t i = 0; i < ctx.inputs.size(); ++i) {
    std::copy(ctx.inputs[i]->data.begin(), ctx.inputs[i]->data.end(),
              out.data.begin() + ctx.node.attrs.list("offsets")[i]);
  }
}

Type infer_reduce_scatter(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t shards = attrs.integer("shards");
  const std::int64_t size = infer_pack(in, attrs).shape[0];
  if (shards < 1 || size % shards != 0)
    shape_error(std::to_string(size) + " elements cannot be divided into " +
                std::to_string(shards) + " shards");
  return {DType::kF32, {size / shards}};
}

void eval_reduce_scatter(const EvalContext&, RefTensor&) {
  throw UserError("reduce_scatter: needs the gradients of all ranks");
}

std::vector<ValueId> grad_pack(GradContext& ctx) {
  const std::vector<std::int64_t> offsets = ctx.self().attrs.list("offsets");
  std::vector<ValueId> grads;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const Shape shape = ctx.in(i).shape();
    const Expr part = op::slice(ctx.dy(), {offsets[i]}, {offsets[i] + numel(shape)});
    grads.push_back(op::reshape(part, shape).id);
  }
  return grads;
}

void check_index(const Type& index) {
  if (index.dtype != DType::kI32 && index.dtype != DType::kU32) {
    dtype_error("an index must be i32 or u32, got " + to_string(index));
  }
}

// out[p, i, q] = x[p, index[p, i, q], q], or 0 if the index is out of range.
Type infer_gather(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t axis = attrs.integer("axis");
  check_index(in[1]);
  check_axis(axis, in[0].shape);
  if (in[0].shape.size() != in[1].shape.size() ||
      without_axes(in[0].shape, {axis}) != without_axes(in[1].shape, {axis})) {
    shape_error("x " + to_string(in[0].shape) + " and index " + to_string(in[1].shape) +
                " differ on axes other than " + std::to_string(axis));
  }
  return {in[0].dtype, in[1].shape};
}

void eval_gather(const EvalContext& ctx, RefTensor& out) {
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  const AxisSplit from = split_at(ctx.inputs[0]->type.shape, axis);
  const AxisSplit to = split_at(out.type.shape, axis);
  for (std::int64_t i = 0; i < numel(out.type.shape); ++i) {
    const std::int64_t p = i / (to.size * to.post), q = i % to.post;
    const auto v = static_cast<std::int64_t>(ctx.inputs[1]->data[static_cast<size_t>(i)]);
    const bool inside = v >= 0 && v < from.size;
    out.data.push_back(
        inside ? ctx.inputs[0]->data[static_cast<size_t>((p * from.size + v) * from.post + q)] : 0);
  }
}

std::vector<ValueId> grad_gather(GradContext& ctx) {
  if (register_dtype(ctx.in(0).dtype()) != DType::kF32) return {kNoValue, kNoValue};
  const std::int64_t axis = ctx.self().attrs.integer("axis");
  const Shape shape = ctx.in(0).shape();
  const auto a = static_cast<size_t>(axis);
  const Expr index = ctx.in(1);
  if (index.shape()[a] != 1) {
    return {op::scatter_add(ctx.dy(), index, static_cast<int>(axis), shape[a]).id, kNoValue};
  }
  // If one element per line was selected, a comparison fuses, and no one-hot tensor is
  // materialized.
  const Expr place = op::iota(ctx.builder, shape, static_cast<int>(axis), index.dtype());
  const Expr hit = op::eq(place, op::broadcast(index, shape));
  return {op::where(hit, op::broadcast(ctx.dy(), shape), 0).id, kNoValue};
}

// out[p, v, q] = sum over i with index[p, i, q] == v of source[p, i, q]. Elements with an index out
// of range are dropped.
Type infer_scatter(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t axis = attrs.integer("axis");
  check_index(in[1]);
  check_axis(axis, in[0].shape);
  if (in[0].dtype == DType::kBool) {
    dtype_error("expected f32, i32 or u32, got " + to_string(in[0]));
  }
  if (in[0].shape != in[1].shape) {
    shape_error("source " + to_string(in[0].shape) + " and index " + to_string(in[1].shape) +
                " differ");
  }
  Type out = in[0];
  out.shape[static_cast<size_t>(axis)] = attrs.integer("size");
  return out;
}

void eval_scatter(const EvalContext& ctx, RefTensor& out) {
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  const AxisSplit from = split_at(ctx.inputs[0]->type.shape, axis);
  const AxisSplit to = split_at(out.type.shape, axis);
  out.data.assign(static_cast<size_t>(numel(out.type.shape)), 0);
  for (std::int64_t i = 0; i < numel(ctx.inputs[0]->type.shape); ++i) {
    const std::int64_t p = i / (from.size * from.post), q = i % from.post;
    const auto v = static_cast<std::int64_t>(ctx.inputs[1]->data[static_cast<size_t>(i)]);
    if (v < 0 || v >= to.size) continue;
    double& sum = out.data[static_cast<size_t>((p * to.size + v) * to.post + q)];
    sum = wrap(out.type.dtype, sum + ctx.inputs[0]->data[static_cast<size_t>(i)]);
  }
}

std::vector<ValueId> grad_scatter(GradContext& ctx) {
  if (ctx.in(0).dtype() != DType::kF32) return {kNoValue, kNoValue};
  const auto axis = static_cast<int>(ctx.self().attrs.integer("axis"));
  return {op::gather(ctx.dy(), ctx.in(1), axis).id, kNoValue};
}

// out[p, start[p, 0, q] + i, q] = update[p, i, q]. Other elements are those of x. Elements of
// `update` outside of x are dropped. `start` has one element for each line (p, q).
Type infer_index_update(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t axis = attrs.integer("axis");
  const Type &x = in[0], &update = in[1], &start = in[2];
  check_axis(axis, x.shape);
  if (update.dtype != x.dtype) {
    dtype_error("x " + to_string(x) + " and update " + to_string(update) + " differ in type");
  }
  if (update.shape.size() != x.shape.size() ||
      without_axes(update.shape, {axis}) != without_axes(x.shape, {axis})) {
    shape_error("x " + to_string(x.shape) + " and update " + to_string(update.shape) +
                " differ on axes other than " + std::to_string(axis));
  }
  if (start.dtype != DType::kI32) dtype_error("start must be i32, got " + to_string(start));
  Shape lines = x.shape;
  lines[static_cast<size_t>(axis)] = 1;
  if (start.shape != lines) {
    shape_error("start must be " + to_string(lines) + ", got " + to_string(start.shape));
  }
  return x;
}

void eval_index_update(const EvalContext& ctx, RefTensor& out) {
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  const RefTensor& update = *ctx.inputs[1];
  const AxisSplit to = split_at(out.type.shape, axis);
  const AxisSplit from = split_at(update.type.shape, axis);
  out.data = ctx.inputs[0]->data;
  for (std::int64_t i = 0; i < numel(update.type.shape); ++i) {
    const std::int64_t p = i / (from.size * from.post), q = i % from.post;
    const auto start =
        static_cast<std::int64_t>(ctx.inputs[2]->data[static_cast<size_t>(p * from.post + q)]);
    const std::int64_t at = start + i / from.post % from.size;
    if (at < 0 || at >= to.size) continue;
    out.data[static_cast<size_t>((p * to.size + at) * to.post + q)] =
        update.data[static_cast<size_t>(i)];
  }
}

// Returns the position in the slice of each element of x; outside of it, a number that is not in
// [0, size of the slice). A start that is too large or too small is clamped, so that no difference
// overflows.
Expr place_in_slice(Expr start, const Shape& shape, std::size_t axis, std::int64_t count) {
  const Expr near = op::maximum(op::minimum(start, static_cast<double>(shape[axis])),
                                static_cast<double>(-count));
  return op::iota(*start.builder, shape, static_cast<int>(axis), DType::kI32) -
         op::broadcast(near, shape);
}

std::vector<ValueId> grad_index_update(GradContext& ctx) {
  if (register_dtype(ctx.in(0).dtype()) != DType::kF32) return {kNoValue, kNoValue, kNoValue};
  const auto axis = static_cast<size_t>(ctx.self().attrs.integer("axis"));
  const Shape whole = ctx.in(0).shape(), slice = ctx.in(1).shape();
  const Expr start = ctx.in(2);
  const Expr place = place_in_slice(start, whole, axis, slice[axis]);
  const Expr outside =
      op::logical_or(op::lt(place, 0), op::ge(place, static_cast<double>(slice[axis])));
  // A start that is too large is clamped, so that no sum overflows.
  const Expr near = op::minimum(start, static_cast<double>(whole[axis]));
  const Expr index = op::iota(ctx.builder, slice, static_cast<int>(axis), DType::kI32) +
                     op::broadcast(near, slice);
  return {op::where(outside, ctx.dy(), 0).id,
          op::gather(ctx.dy(), index, static_cast<int>(axis)).id, kNoValue};
}

ValueId expand_index_update(ExpandContext& ctx) {
  const auto axis = static_cast<size_t>(ctx.node.attrs.integer("axis"));
  const Shape whole = ctx.in(0).shape();
  const std::int64_t count = ctx.in(1).shape()[axis];
  const Expr place = place_in_slice(ctx.in(2), whole, axis, count);
  if (count == 1) {
    return op::where(op::eq(place, 0), op::broadcast(ctx.in(1), whole), ctx.in(0)).id;
  }
  const Expr inside = op::logical_and(op::ge(place, 0), op::lt(place, static_cast<double>(count)));
  return op::where(inside, op::gather(ctx.in(1), place, static_cast<int>(axis)), ctx.in(0)).id;
}

}  // namespace

namespace ops {

constinit const OpDef concat =
    make_op("concat", OpKind::kConcat, -1, infer_concat, grad_concat, eval_concat);
constinit const OpDef pack = make_op("pack", OpKind::kPack, -1, infer_pack, grad_pack, eval_pack);
constinit const OpDef reduce_scatter = make_op("reduce_scatter", OpKind::kPack, -1,
                                               infer_reduce_scatter, nullptr, eval_reduce_scatter);
constinit const OpDef gather =
    make_op("gather", OpKind::kGather, 2, infer_gather, grad_gather, eval_gather);
constinit const OpDef scatter_add =
    make_op("scatter_add", OpKind::kScatter, 2, infer_scatter, grad_scatter, eval_scatter);
constinit const OpDef index_update =
    make_op("index_update", OpKind::kIndexUpdate, 3, infer_index_update, grad_index_update,
            eval_index_update, expand_index_update);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
