// SPDX-License-Identifier: MIT
// Convolutions: the composite ops of ops/conv.cpp, plus a bias. A 1-D convolution is a 2-D one of
// height 1.
#include <algorithm>

#include "ops/structured.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

void check_ranks(const OpContext& ctx, Expr x, Expr weight, std::size_t rank) {
  if (x.shape().size() == rank && weight.shape().size() == rank) return;
  throw ShapeError(ctx.name() + ": expected x and weight with " + std::to_string(rank) +
                       " axes, got x " + to_string(x.shape()) + ", weight " +
                       to_string(weight.shape()),
                   ctx.location());
}

// [B, C, L] -> [B, C, 1, L]
Expr with_height(Expr x) {
  Shape shape = x.shape();
  shape.insert(shape.begin() + 2, 1);
  return op::reshape(x, shape);
}

Expr without_height(Expr x) {
  Shape shape = x.shape();
  shape.erase(shape.begin() + 2);
  return op::reshape(x, shape);
}

// Returns y [B, C, ..] plus bias [C].
Tensor plus_bias(OpContext& ctx, Expr y, const std::optional<Tensor>& bias) {
  if (!bias) return ctx.out(y);
  const Expr b = ctx.in(*bias);
  const Shape shape = y.shape();
  if (b.shape() != Shape{shape[1]}) {
    throw ShapeError(ctx.name() + ": bias must be " + to_string(Shape{shape[1]}) + ", got " +
                         to_string(b.shape()),
                     ctx.location());
  }
  Shape column(shape.size() - 1, 1);
  column[0] = shape[1];
  return ctx.out(y + op::broadcast(op::reshape(b, column), shape));
}

Attrs geometry(const Conv2dOptions& o) {
  return {{"stride", std::vector{o.stride.h, o.stride.w}},
          {"padding", std::vector{o.padding.h, o.padding.w}},
          {"dilation", std::vector{o.dilation.h, o.dilation.w}},
          {"groups", o.groups}};
}

Conv2dOptions in_two(const Conv1dOptions& o) {
  return {.stride = {1, o.stride},
          .padding = {0, o.padding},
          .dilation = {1, o.dilation},
          .groups = o.groups};
}

// Returns the output size along an axis.
std::int64_t transposed_size(const OpContext& ctx, std::int64_t length, std::int64_t kernel,
                             std::int64_t stride, std::int64_t padding, std::int64_t dilation,
                             std::int64_t output_padding) {
  const auto refuse = [&](const std::string& text) {
    throw ShapeError(ctx.name() + ": " + text, ctx.location());
  };
  if (output_padding < 0 || output_padding >= std::max(stride, dilation)) {
    refuse("output_padding must be less than stride or dilation, got " +
           std::to_string(output_padding));
  }
  const std::int64_t size =
      (length - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1;
  if (size < 1) refuse("the output for " + std::to_string(length) + " elements is empty");
  return size;
}

// The convolution of the result has as many windows as x has elements only if output_padding is
// less than the stride. Each whole stride in output_padding adds a window, for which x is padded
// with zeros.
Expr with_windows_of_zeros(Expr x, const ConvTranspose2dOptions& o) {
  const std::int64_t below = o.output_padding.h / o.stride.h,
                     right = o.output_padding.w / o.stride.w;
  return below + right == 0 ? x : op::pad(x, {0, 0, 0, 0}, {0, 0, below, right});
}

Expr transposed(OpContext& ctx, Expr x, Expr weight, const ConvTranspose2dOptions& o) {
  Attrs attrs = geometry(
      {.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups});
  const Shape &from = x.shape(), kernel = weight.shape();
  attrs.set("size", std::vector{transposed_size(ctx, from[2], kernel[2], o.stride.h, o.padding.h,
                                                o.dilation.h, o.output_padding.h),
                                transposed_size(ctx, from[3], kernel[3], o.stride.w, o.padding.w,
                                                o.dilation.w, o.output_padding.w)});
  return op::apply(ctx.builder, ops::conv_transpose2d, {with_windows_of_zeros(x, o), weight},
                   attrs);
}

}  // namespace

Tensor conv2d(Tensor x, Tensor weight, std::optional<Tensor> bias, const Conv2dOptions& options,
              Loc loc) {
  const Composite composite("conv2d", loc);
  const MixedProduct downcast({&x, &weight}, x.dtype() == DType::kF16);
  OpContext ctx("conv2d", loc);
  const Expr in = ctx.in(x), w = ctx.in(weight);
  check_ranks(ctx, in, w, 4);
  return downcast(
      plus_bias(ctx, op::apply(ctx.builder, ops::conv2d, {in, w}, geometry(options)), bias));
}

Tensor conv1d(Tensor x, Tensor weight, std::optional<Tensor> bias, const Conv1dOptions& options,
              Loc loc) {
  const Composite composite("conv1d", loc);
  const MixedProduct downcast({&x, &weight}, x.dtype() == DType::kF16);
  OpContext ctx("conv1d", loc);
  const Expr in = ctx.in(x), w = ctx.in(weight);
  check_ranks(ctx, in, w, 3);
  const Expr y = op::apply(ctx.builder, ops::conv2d, {with_height(in), with_height(w)},
                           geometry(in_two(options)));
  return downcast(plus_bias(ctx, without_height(y), bias));
}

Tensor conv_transpose2d(Tensor x, Tensor weight, std::optional<Tensor> bias,
                        const ConvTranspose2dOptions& options, Loc loc) {
  const Composite composite("conv_transpose2d", loc);
  const MixedProduct downcast({&x, &weight}, x.dtype() == DType::kF16);
  OpContext ctx("conv_transpose2d", loc);
  const Expr in = ctx.in(x), w = ctx.in(weight);
  check_ranks(ctx, in, w, 4);
  return downcast(plus_bias(ctx, transposed(ctx, in, w, options), bias));
}

Tensor conv_transpose1d(Tensor x, Tensor weight, std::optional<Tensor> bias,
                        const ConvTranspose1dOptions& options, Loc loc) {
  const Composite composite("conv_transpose1d", loc);
  const MixedProduct downcast({&x, &weight}, x.dtype() == DType::kF16);
  OpContext ctx("conv_transpose1d", loc);
  const Expr in = ctx.in(x), w = ctx.in(weight);
  check_ranks(ctx, in, w, 3);
  const ConvTranspose2dOptions in_two = {.stride = {1, options.stride},
                                         .padding = {0, options.padding},
                                         .output_padding = {0, options.output_padding},
                                         .groups = options.groups,
                                         .dilation = {1, options.dilation}};
  const Expr y = transposed(ctx, with_height(in), with_height(w), in_two);
  return downcast(plus_bias(ctx, without_height(y), bias));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
