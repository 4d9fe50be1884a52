// SPDX-License-Identifier: MIT
// Convolution, its adjoint in x, and its adjoint in the weight. Let c and o be the channels of a
// group, and let a window read x at i = n * stride + j * dilation - padding:
//   conv2d:            y[b,o,n] = sum over c, j of x[b,c,i] * w[o,c,j]
//   conv_transpose2d:  x[b,c,i] = sum over o, n, j of y[b,o,n] * w[o,c,j]
//   conv2d_weight:     w[o,c,j] = sum over b, n of x[b,c,i] * y[b,o,n]
// Each is linear in both operands, and the gradients of each are the other two.
#include <algorithm>

#include "ops/window.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

void check_operands(std::span<const Type> in, const char* first, const char* second) {
  for (const Type& type : in) {
    if (type.dtype != DType::kF32) dtype_error("expected f32, got " + to_string(type));
    if (type.shape.size() != 4) {
      shape_error("expected " + std::string(first) + " and " + second + " with four axes, got " +
                  to_string(in[0].shape) + " and " + to_string(in[1].shape));
    }
  }
}

// Checks the channels of x and y against the weight [of y, of x / groups, ..].
void check_channels(std::int64_t of_x, std::int64_t of_y, const Shape& weight,
                    std::int64_t groups) {
  if (groups < 1) shape_error("groups must be at least 1, got " + std::to_string(groups));
  for (const std::int64_t channels : {of_x, of_y}) {
    if (channels % groups == 0) continue;
    shape_error(std::to_string(channels) + " channels cannot be divided into " +
                std::to_string(groups) + " groups");
  }
  const bool fits = of_x / groups == weight[1];
  if (fits && of_y == weight[0]) return;
  const std::int64_t given = fits ? of_y : of_x;
  const std::int64_t expected = fits ? weight[0] : weight[1] * groups;
  shape_error("x has " + std::to_string(given) + " channels on axis 1, the weight expects " +
              std::to_string(expected));
}

Type infer_conv(std::span<const Type> in, const Attrs& attrs) {
  check_operands(in, "x", "weight");
  const Shape &x = in[0].shape, &w = in[1].shape;
  check_channels(x[1], w[0], w, attrs.integer("groups"));
  const Windows windows = Windows::of(attrs, {w[2], w[3]});
  windows.check(x[2], x[3]);
  return {DType::kF32, {x[0], w[0], windows.h.count(x[2]), windows.w.count(x[3])}};
}

// Throws unless an image of `size` [h, w] has as many windows as y.
void check_counts(const Windows& windows, const std::vector<std::int64_t>& size, const Shape& y) {
  windows.check(size[0], size[1]);
  if (windows.h.count(size[0]) != y[2] || windows.w.count(size[1]) != y[3]) {
    shape_error("an image of " + to_string(size) + " has no " + std::to_string(y[2]) + " by " +
                std::to_string(y[3]) + " windows");
  }
}

// attr size: height and width of the result.
Type infer_transpose(std::span<const Type> in, const Attrs& attrs) {
  check_operands(in, "x", "weight");
  const Shape &y = in[0].shape, &w = in[1].shape;
  const std::int64_t groups = attrs.integer("groups");
  check_channels(w[1] * groups, y[1], w, groups);
  const auto& size = attrs.list("size");
  check_counts(Windows::of(attrs, {w[2], w[3]}), size, y);
  return {DType::kF32, {y[0], w[1] * groups, size[0], size[1]}};
}

// attr kernel: height and width of the result.
Type infer_weight(std::span<const Type> in, const Attrs& attrs) {
  check_operands(in, "x", "y");
  const Shape &x = in[0].shape, &y = in[1].shape;
  const auto& kernel = attrs.list("kernel");
  const std::int64_t groups = attrs.integer("groups");
  const Shape weight = {y[1], x[1] / std::max<std::int64_t>(groups, 1), kernel[0], kernel[1]};
  check_channels(x[1], y[1], weight, groups);
  check_counts(Windows::of(attrs, kernel), {x[2], x[3]}, y);
  return {DType::kF32, weight};
}

// Calls visit(index in x, index in w, index in y) for every product.
template <class Visit>
void for_each_product(const Shape& x, const Shape& w, const Shape& y, const Attrs& attrs,
                      const Visit& visit) {
  const Windows windows = Windows::of(attrs, {w[2], w[3]});
  const std::int64_t per_group = w[0] / attrs.integer("groups");
  const Shape domain = {y[0], y[1], y[2], y[3], w[1], w[2], w[3]};
  std::int64_t at[7];
  for (std::int64_t i = 0; i < numel(domain); ++i) {
    std::int64_t rest = i;
    for (std::size_t d = 7; d-- > 0; rest /= domain[d]) at[d] = rest % domain[d];
    const auto [b, o, n, m, c, j, k] = at;
    const std::int64_t row = n * windows.h.step + j * windows.h.dilation - windows.h.padding;
    const std::int64_t col = m * windows.w.step + k * windows.w.dilation - windows.w.padding;
    if (row < 0 || row >= x[2] || col < 0 || col >= x[3]) continue;
    const std::int64_t channel = o / per_group * w[1] + c;
    visit(static_cast<std::size_t>(((b * x[1] + channel) * x[2] + row) * x[3] + col),
          static_cast<std::size_t>(((o * w[1] + c) * w[2] + j) * w[3] + k),
          static_cast<std::size_t>(((b * y[1] + o) * y[2] + n) * y[3] + m));
  }
}

void eval_conv(const EvalContext& ctx, RefTensor& out) {
  const RefTensor &x = *ctx.inputs[0], &w = *ctx.inputs[1];
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  for_each_product(
      x.type.shape, w.type.shape, out.type.shape, ctx.node.attrs,
      [&](std::size_t i, std::size_t j, std::size_t n) { out.data[n] += x.data[i] * w.data[j]; });
}

void eval_transpose(const EvalContext& ctx, RefTensor& out) {
  const RefTensor &y = *ctx.inputs[0], &w = *ctx.inputs[1];
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  for_each_product(
      out.type.shape, w.type.shape, y.type.shape, ctx.node.attrs,
      [&](std::size_t i, std::size_t j, std::size_t n) { out.data[i] += y.data[n] * w.data[j]; });
}

void eval_weight(const EvalContext& ctx, RefTensor& out) {
  const RefTensor &x = *ctx.inputs[0], &y = *ctx.inputs[1];
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  for_each_product(
      x.type.shape, out.type.shape, y.type.shape, ctx.node.attrs,
      [&](std::size_t i, std::size_t j, std::size_t n) { out.data[j] += x.data[i] * y.data[n]; });
}

// Returns the window attributes, for the op of another operand.
Attrs geometry(const Attrs& attrs) {
  return {{"stride", attrs.list("stride")},
          {"padding", attrs.list("padding")},
          {"dilation", attrs.list("dilation")},
          {"groups", attrs.integer("groups")}};
}

Expr conv(Expr x, Expr w, const Attrs& attrs) {
  return op::apply(*x.builder, ops::conv2d, {x, w}, geometry(attrs));
}

Expr conv_transpose(Expr y, Expr w, const Attrs& of, const Shape& x) {
  Attrs attrs = geometry(of);
  attrs.set("size", std::vector<std::int64_t>{x[2], x[3]});
  return op::apply(*y.builder, ops::conv_transpose2d, {y, w}, attrs);
}

Expr conv_weight(Expr x, Expr y, const Attrs& of, const Shape& w) {
  Attrs attrs = geometry(of);
  attrs.set("kernel", std::vector<std::int64_t>{w[2], w[3]});
  return op::apply(*x.builder, ops::conv2d_weight, {x, y}, attrs);
}

std::vector<ValueId> grad_conv(GradContext& ctx) {
  const Attrs attrs = ctx.self().attrs;
  const Expr x = ctx.in(0), w = ctx.in(1);
  return {conv_transpose(ctx.dy(), w, attrs, x.shape()).id,
          conv_weight(x, ctx.dy(), attrs, w.shape()).id};
}

std::vector<ValueId> grad_transpose(GradContext& ctx) {
  const Attrs attrs = ctx.self().attrs;
  const Expr y = ctx.in(0), w = ctx.in(1);
  return {conv(ctx.dy(), w, attrs).id, conv_weight(ctx.dy(), y, attrs, w.shape()).id};
}

std::vector<ValueId> grad_weight(GradContext& ctx) {
  const Attrs attrs = ctx.self().attrs;
  const Expr x = ctx.in(0), y = ctx.in(1);
  return {conv_transpose(y, ctx.dy(), attrs, x.shape()).id, conv(x, ctx.dy(), attrs).id};
}

// im2col: the elements in each window of x (padded), [B, g, C/g * kh * kw, Ho * Wo]. A view.
Expr columns(Expr x, const Windows& windows, std::int64_t groups) {
  const Shape from = x.shape();
  const Expr all = op::permute(op::windows_of(x, windows), {0, 1, 4, 5, 2, 3});
  const std::int64_t depth = from[1] / groups * windows.taps();
  return op::reshape(all,
                     {from[0], groups, depth, numel(all.shape()) / (from[0] * groups * depth)});
}

// Broadcasts w [g, m, k] over a batch.
Expr for_each_image(Expr w, std::int64_t batch) {
  Shape shape = w.shape();
  shape.insert(shape.begin(), batch);
  return op::broadcast(w, shape);
}

// y[b] = w . columns(x[b]). The product reads x through the view; columns are not materialized.
ValueId expand_conv(ExpandContext& ctx) {
  const Expr x = ctx.in(0), w = ctx.in(1);
  const Shape weight = w.shape();
  const std::int64_t groups = ctx.node.attrs.integer("groups"), batch = x.shape()[0];
  const Windows windows = Windows::of(ctx.node.attrs, {weight[2], weight[3]});
  const Expr rows = op::reshape(w, {groups, weight[0] / groups, weight[1] * windows.taps()});
  const Expr y =
      op::matmul(for_each_image(rows, batch), columns(op::padded(x, windows), windows, groups));
  return op::reshape(y, ctx.node.type.shape).id;
}

// Pads both ends of an axis with zeros, or removes elements if an amount is negative.
Expr resized(Expr x, int axis, std::int64_t before, std::int64_t after) {
  const auto a = static_cast<std::size_t>(axis);
  std::vector<std::int64_t> front(x.shape().size(), 0), back = front, stop = x.shape();
  front[a] = std::max<std::int64_t>(-before, 0);
  stop[a] -= std::max<std::int64_t>(-after, 0);
  if (front[a] >= stop[a]) {
    Shape shape = x.shape();
    shape[a] += before + after;
    return op::full(*x.builder, 0, {x.dtype(), shape});
  }
  const Expr cut = op::slice(x, front, stop);
  front[a] = std::max<std::int64_t>(before, 0);
  back[a] = std::max<std::int64_t>(after, 0);
  return front[a] == 0 && back[a] == 0 ? cut : op::pad(cut, front, back);
}

// Convolves y, dilated by the stride, with the weight rotated by 180 degrees, at stride 1.
ValueId expand_transpose(ExpandContext& ctx) {
  Expr y = ctx.in(0);
  const Expr w = ctx.in(1);
  const Shape weight = w.shape(), out = ctx.node.type.shape;
  const std::int64_t groups = ctx.node.attrs.integer("groups");
  Windows windows = Windows::of(ctx.node.attrs, {weight[2], weight[3]});
  for (const int axis : {2, 3}) {
    WindowAxis& window = axis == 2 ? windows.h : windows.w;
    const auto a = static_cast<std::size_t>(axis);
    y = op::dilate(y, axis, window.step);
    const std::int64_t before = window.reach() - window.padding;
    y = resized(y, axis, before, out[a] + window.reach() - before - y.shape()[a]);
    window = {window.size, 1, 0, window.dilation};
  }
  const Expr grouped =
      op::reshape(w, {groups, weight[0] / groups, weight[1], weight[2], weight[3]});
  const Expr turned = op::permute(op::flip(grouped, {3, 4}), {0, 2, 1, 3, 4});
  const Expr rows = op::reshape(turned, {groups, weight[1], weight[0] / groups * windows.taps()});
  const Expr x = op::matmul(for_each_image(rows, out[0]), columns(y, windows, groups));
  return op::reshape(x, out).id;
}

// Returns the number of parts into which the batch is split, each with its own product. It is as
// large as possible while the products take no more memory than the operands.
std::int64_t batch_part_count(std::int64_t batch, std::int64_t product, std::int64_t operands) {
  std::int64_t parts = std::min(batch, std::max<std::int64_t>(1, operands / product));
  while (batch % parts != 0) --parts;
  return parts;
}

// w = sum over parts of y . columns(x)^T, over the images of a part.
ValueId expand_weight(ExpandContext& ctx) {
  const Expr x = ctx.in(0), y = ctx.in(1);
  const Shape weight = ctx.node.type.shape, out = y.shape();
  const std::int64_t groups = ctx.node.attrs.integer("groups"), batch = out[0];
  const Windows windows = Windows::of(ctx.node.attrs, {weight[2], weight[3]});
  const std::int64_t m = weight[0] / groups, k = out[2] * out[3], n = weight[1] * windows.taps();
  const std::int64_t parts =
      batch_part_count(batch, numel(weight), numel(x.shape()) + numel(y.shape()));
  const auto by_parts = [&](Expr operand, std::int64_t rows,
                            const std::vector<std::int64_t>& axes) {
    return op::permute(op::reshape(operand, {parts, batch / parts, groups, rows, k}), axes);
  };
  const Expr a =
      op::reshape(by_parts(y, m, {0, 2, 3, 1, 4}), {parts, groups, m, batch / parts * k});
  const Expr b =
      op::reshape(by_parts(columns(op::padded(x, windows), windows, groups), n, {0, 2, 1, 4, 3}),
                  {parts, groups, batch / parts * k, n});
  return op::reshape(op::sum(op::matmul(a, b), {0}), weight).id;
}

}  // namespace

namespace ops {

constinit const OpDef conv2d =
    make_composite_op("conv2d", 2, infer_conv, grad_conv, eval_conv, expand_conv);
constinit const OpDef conv_transpose2d = make_composite_op(
    "conv_transpose2d", 2, infer_transpose, grad_transpose, eval_transpose, expand_transpose);
constinit const OpDef conv2d_weight =
    make_composite_op("conv2d_weight", 2, infer_weight, grad_weight, eval_weight, expand_weight);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
