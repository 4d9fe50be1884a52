// SPDX-License-Identifier: MIT
// Views: reshape, permute, broadcast, slice, pad, flip, unfold. They never become kernels of their
// own.
#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::string axes_text(const std::vector<std::int64_t>& axes) { return to_string(axes); }

Type infer_reshape(std::span<const Type> in, const Attrs& attrs) {
  const Shape& shape = attrs.list("shape");
  if (numel(shape) != numel(in[0].shape)) {
    shape_error("cannot make " + to_string(shape) + " (" + std::to_string(numel(shape)) +
                " elements) from " + to_string(in[0].shape) + " (" +
                std::to_string(numel(in[0].shape)) + " elements)");
  }
  return {in[0].dtype, shape};
}

View view_reshape(const Type&, const Attrs& attrs) { return View::contiguous(attrs.list("shape")); }

std::vector<ValueId> grad_reshape(GradContext& ctx) {
  return {op::reshape(ctx.dy(), ctx.in(0).shape()).id};
}

Type infer_permute(std::span<const Type> in, const Attrs& attrs) {
  const std::vector<std::int64_t>& axes = attrs.list("axes");
  std::vector<std::int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> all(in[0].shape.size());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) {
    shape_error("axes " + axes_text(axes) + " do not name each axis of " + to_string(in[0].shape) +
                " exactly once");
  }
  Shape shape;
  for (const std::int64_t axis : axes) shape.push_back(in[0].shape[static_cast<size_t>(axis)]);
  return {in[0].dtype, shape};
}

View view_permute(const Type& in, const Attrs& attrs) {
  const View flat = View::contiguous(in.shape);
  View view;
  for (const std::int64_t axis : attrs.list("axes")) {
    view.shape.push_back(flat.shape[static_cast<size_t>(axis)]);
    view.strides.push_back(flat.strides[static_cast<size_t>(axis)]);
  }
  return view;
}

std::vector<ValueId> grad_permute(GradContext& ctx) {
  const std::vector<std::int64_t> axes = ctx.self().attrs.list("axes");
  std::vector<std::int64_t> back(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    back[static_cast<size_t>(axes[i])] = static_cast<std::int64_t>(i);
  }
  return {op::permute(ctx.dy(), back).id};
}

Type infer_broadcast(std::span<const Type> in, const Attrs& attrs) {
  const Shape& from = in[0].shape;
  const Shape& to = attrs.list("shape");
  bool fits = from.size() <= to.size();
  for (std::size_t i = 0; fits && i < from.size(); ++i) {
    const std::int64_t size = from[from.size() - 1 - i];
    fits = size == 1 || size == to[to.size() - 1 - i];
  }
  if (!fits) shape_error("cannot broadcast " + to_string(from) + " to " + to_string(to));
  return {in[0].dtype, to};
}

View view_broadcast(const Type& in, const Attrs& attrs) {
  const View flat = View::contiguous(in.shape);
  View view{attrs.list("shape"), {}, 0, {}, {}};
  const std::size_t added = view.shape.size() - in.shape.size();
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    const bool grows = d < added || in.shape[d - added] != view.shape[d];
    view.strides.push_back(grows ? 0 : flat.strides[d - added]);
  }
  return view;
}

std::vector<ValueId> grad_broadcast(GradContext& ctx) {
  return {op::sum_to(ctx.dy(), ctx.in(0).shape()).id};
}

// attrs: start, stop (one per axis)
Type infer_slice(std::span<const Type> in, const Attrs& attrs) {
  const auto& start = attrs.list("start");
  const auto& stop = attrs.list("stop");
  const Shape& from = in[0].shape;
  Shape shape;
  if (start.size() != from.size() || stop.size() != from.size()) {
    shape_error("expected one range for each axis of " + to_string(from));
  }
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (start[d] < 0 || stop[d] > from[d] || start[d] >= stop[d]) {
      shape_error("[" + std::to_string(start[d]) + "," + std::to_string(stop[d]) +
                  ") is not a range of axis " + std::to_string(d) + " of " + to_string(from));
    }
    shape.push_back(stop[d] - start[d]);
  }
  return {in[0].dtype, shape};
}

View view_slice(const Type& in, const Attrs& attrs) {
  View view = View::contiguous(in.shape);
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    view.offset += attrs.list("start")[d] * view.strides[d];
    view.shape[d] = attrs.list("stop")[d] - attrs.list("start")[d];
  }
  return view;
}

std::vector<ValueId> grad_slice(GradContext& ctx) {
  const std::vector<std::int64_t> start = ctx.self().attrs.list("start");
  std::vector<std::int64_t> after = ctx.in(0).shape();
  for (std::size_t d = 0; d < after.size(); ++d) after[d] -= ctx.self().attrs.list("stop")[d];
  return {op::pad(ctx.dy(), start, after).id};
}

// attrs: before, after: number of zeros added at the ends of each axis
Type infer_pad(std::span<const Type> in, const Attrs& attrs) {
  const auto& before = attrs.list("before");
  const auto& after = attrs.list("after");
  Shape shape = in[0].shape;
  if (before.size() != shape.size() || after.size() != shape.size()) {
    shape_error("expected one amount before and after for each axis of " + to_string(shape));
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (before[d] < 0 || after[d] < 0) shape_error("padding must not be negative");
    constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
    if (before[d] > kMaxInt32 || after[d] > kMaxInt32) shape_error("padding is above 2^31-1");
    shape[d] += before[d] + after[d];
  }
  return {in[0].dtype, shape};
}

View view_pad(const Type& in, const Attrs& attrs) {
  View view = View::contiguous(in.shape);
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    const std::int64_t before = attrs.list("before")[d], after = attrs.list("after")[d];
    view.lo.push_back(before);
    view.hi.push_back(before + view.shape[d]);
    view.offset -= before * view.strides[d];
    view.shape[d] += before + after;
  }
  return view;
}

std::vector<ValueId> grad_pad(GradContext& ctx) {
  const std::vector<std::int64_t> before = ctx.self().attrs.list("before");
  std::vector<std::int64_t> stop = ctx.in(0).shape();
  for (std::size_t d = 0; d < stop.size(); ++d) stop[d] += before[d];
  return {op::slice(ctx.dy(), before, stop).id};
}

Type infer_flip(std::span<const Type> in, const Attrs& attrs) {
  for (const std::int64_t axis : attrs.list("axes")) check_axis(axis, in[0].shape);
  return in[0];
}

View view_flip(const Type& in, const Attrs& attrs) {
  View view = View::contiguous(in.shape);
  for (const std::int64_t axis : attrs.list("axes")) {
    const auto d = static_cast<size_t>(axis);
    view.offset += (view.shape[d] - 1) * view.strides[d];
    view.strides[d] = -view.strides[d];
  }
  return view;
}

std::vector<ValueId> grad_flip(GradContext& ctx) {
  return {op::flip(ctx.dy(), std::vector<std::int64_t>(ctx.self().attrs.list("axes"))).id};
}

// attrs: axis, size, step, dilation
Type infer_unfold(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t axis = attrs.integer("axis"), size = attrs.integer("size");
  const std::int64_t step = attrs.integer("step"), dilation = attrs.integer("dilation");
  check_axis(axis, in[0].shape);
  Shape shape = in[0].shape;
  std::int64_t& length = shape[static_cast<size_t>(axis)];
  if (size < 1 || step < 1 || dilation < 1) {
    shape_error("size " + std::to_string(size) + ", step " + std::to_string(step) +
                " and dilation " + std::to_string(dilation) + " must be at least 1");
  }
  if ((size - 1) > (length - 1) / dilation) {
    shape_error("a window of " + std::to_string(size) + " with dilation " +
                std::to_string(dilation) + " does not fit axis " + std::to_string(axis) + " of " +
                to_string(in[0].shape));
  }
  length = (length - dilation * (size - 1) - 1) / step + 1;
  shape.push_back(size);
  return {in[0].dtype, shape};
}

View view_unfold(const Type& in, const Attrs& attrs) {
  const auto axis = static_cast<size_t>(attrs.integer("axis"));
  View view = View::contiguous(in.shape);
  const std::int64_t pitch = view.strides[axis];
  view.shape = infer_unfold({&in, 1}, attrs).shape;
  view.strides[axis] = pitch * attrs.integer("step");
  view.strides.push_back(pitch * attrs.integer("dilation"));
  return view;
}

std::vector<ValueId> grad_unfold(GradContext& ctx) {
  const Attrs attrs = ctx.self().attrs;
  const std::int64_t axis = attrs.integer("axis");
  const std::int64_t length = ctx.in(0).shape()[static_cast<size_t>(axis)];
  return {op::fold(ctx.dy(), static_cast<int>(axis), length, attrs.integer("step"),
                   attrs.integer("dilation"))
              .id};
}

void eval_view(const EvalContext& ctx, RefTensor& out) {
  const RefTensor& in = *ctx.inputs[0];
  const IndexMap map{{ctx.node.op->view(in.type, ctx.node.attrs)}};
  const std::int64_t count = numel(out.type.shape);
  out.data.reserve(static_cast<size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = offset_at(map, i);
    out.data.push_back(at < 0 ? 0 : in.data[static_cast<size_t>(at)]);
  }
}

}  // namespace

namespace ops {

constinit const OpDef reshape =
    make_view_op("reshape", 1, infer_reshape, grad_reshape, eval_view, view_reshape);
constinit const OpDef permute =
    make_view_op("permute", 1, infer_permute, grad_permute, eval_view, view_permute);
constinit const OpDef broadcast =
    make_view_op("broadcast", 1, infer_broadcast, grad_broadcast, eval_view, view_broadcast);
constinit const OpDef slice =
    make_view_op("slice", 1, infer_slice, grad_slice, eval_view, view_slice);
constinit const OpDef pad = make_view_op("pad", 1, infer_pad, grad_pad, eval_view, view_pad);
constinit const OpDef flip = make_view_op("flip", 1, infer_flip, grad_flip, eval_view, view_flip);
constinit const OpDef unfold =
    make_view_op("unfold", 1, infer_unfold, grad_unfold, eval_view, view_unfold);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
