// SPDX-License-Identifier: MIT
// Reductions over any axes: sum, max, min, argmax, argmin. Reduced axes are removed.
#include <cmath>

#include "ops/pointwise.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// attr axes: sorted, counted from the front, unique
Type infer_reduce(std::span<const Type> in, const Attrs& attrs) {
  const auto& axes = attrs.list("axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    check_axis(axes[i], in[0].shape);
    if (i > 0 && axes[i] <= axes[i - 1]) shape_error("axes " + to_string(axes) + " are not sorted");
  }
  if (in[0].dtype == DType::kBool) dtype_error("expected f32, i32 or u32, got bool");
  return {in[0].dtype, without_axes(in[0].shape, axes)};
}

Type infer_arg(std::span<const Type> in, const Attrs& attrs) {
  Type type = infer_reduce(in, attrs);
  if (attrs.list("axes").size() != 1) shape_error("expected exactly one axis");
  type.dtype = DType::kI32;
  return type;
}

// Calls visit(index in the output, index within the reduction, value) for each element.
template <class Visit>
void for_each_reduced(const EvalContext& ctx, const Visit& visit) {
  const RefTensor& in = *ctx.inputs[0];
  const auto& axes = ctx.node.attrs.list("axes");
  struct Axis {
    std::int64_t size, pitch, of_kept, of_reduced;  // increments of both indices; one of them is 0
  };
  std::vector<Axis> all;
  const std::vector<std::int64_t> pitch = pitches(in.type.shape);
  std::int64_t kept = 1, reduced = 1;
  for (std::size_t d = pitch.size(); d-- > 0;) {
    const std::int64_t size = in.type.shape[d];
    const bool goes = contains(axes, static_cast<std::int64_t>(d));
    all.push_back({size, pitch[d], goes ? 0 : kept, goes ? reduced : 0});
    (goes ? reduced : kept) *= size;
  }
  for (std::size_t i = 0; i < in.data.size(); ++i) {
    std::int64_t out = 0, number = 0;
    for (const Axis& axis : all) {
      const std::int64_t index = static_cast<std::int64_t>(i) / axis.pitch % axis.size;
      out += index * axis.of_kept;
      number += index * axis.of_reduced;
    }
    visit(static_cast<std::size_t>(out), number, in.data[i]);
  }
}

void eval_sum(const EvalContext& ctx, RefTensor& out) {
  out.data.assign(static_cast<size_t>(numel(out.type.shape)), 0);
  for_each_reduced(ctx, [&](std::size_t o, std::int64_t, double v) {
    out.data[o] = wrap(out.type.dtype, out.data[o] + v);
  });
}

// Computes the extreme element or its index. NaN takes precedence, then the first of equal
// elements.
template <bool kMax, bool kArg>
void eval_extreme(const EvalContext& ctx, RefTensor& out) {
  const auto count = static_cast<size_t>(numel(out.type.shape));
  std::vector<double> best(count);
  std::vector<std::int64_t> where(count, -1);
  for_each_reduced(ctx, [&](std::size_t o, std::int64_t i, double v) {
    const bool better = kMax ? v > best[o] : v < best[o];
    if (where[o] < 0 || (!std::isnan(best[o]) && (better || std::isnan(v)))) {
      best[o] = v;
      where[o] = i;
    }
  });
  if constexpr (kArg) {
    out.data.assign(where.begin(), where.end());
  } else {
    out.data = std::move(best);
  }
}

std::vector<ValueId> grad_sum(GradContext& ctx) {
  if (ctx.in(0).dtype() != DType::kF32) return {kNoValue};
  const std::vector<std::int64_t> axes = ctx.self().attrs.list("axes");
  return {op::expand_reduced(ctx.dy(), axes, ctx.in(0).shape()).id};
}

// Elements equal to the extreme share the gradient evenly, as in torch.amax.
std::vector<ValueId> grad_extreme(GradContext& ctx) {
  const Expr x = ctx.in(0);
  if (x.dtype() != DType::kF32) return {kNoValue};
  const std::vector<std::int64_t> axes = ctx.self().attrs.list("axes");
  const Shape shape = x.shape();
  const Expr hit = op::eq(x, op::expand_reduced(ctx.y(), axes, shape));
  const Expr share = ctx.dy() / op::sum(op::cast(hit, DType::kF32), axes);
  return {op::where(hit, op::expand_reduced(share, axes, shape), 0).id};
}

}  // namespace

namespace ops {

constinit const OpDef reduce_sum =
    make_op("sum", OpKind::kReduce, 1, infer_reduce, grad_sum, eval_sum);
constinit const OpDef reduce_max =
    make_op("max", OpKind::kReduce, 1, infer_reduce, grad_extreme, eval_extreme<true, false>);
constinit const OpDef reduce_min =
    make_op("min", OpKind::kReduce, 1, infer_reduce, grad_extreme, eval_extreme<false, false>);
constinit const OpDef argmax =
    make_op("argmax", OpKind::kReduce, 1, infer_arg, nullptr, eval_extreme<true, true>);
constinit const OpDef argmin =
    make_op("argmin", OpKind::kReduce, 1, infer_arg, nullptr, eval_extreme<false, true>);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
