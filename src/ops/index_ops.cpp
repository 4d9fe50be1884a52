// SPDX-License-Identifier: MIT
// Ops that join or index tensors: concat, pack, gather and its adjoint scatter_add.
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

}  // namespace

namespace ops {

constinit const OpDef concat =
    make_op("concat", OpKind::kConcat, -1, infer_concat, grad_concat, eval_concat);
constinit const OpDef pack = make_op("pack", OpKind::kPack, -1, infer_pack, grad_pack, eval_pack);
constinit const OpDef gather =
    make_op("gather", OpKind::kGather, 2, infer_gather, grad_gather, eval_gather);
constinit const OpDef scatter_add =
    make_op("scatter_add", OpKind::kScatter, 2, infer_scatter, grad_scatter, eval_scatter);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
