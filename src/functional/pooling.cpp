// SPDX-License-Identifier: MIT
// Pooling and resizing. Uses the composite ops of ops/pooling.cpp if all windows are equal,
// otherwise gathers and sums. 1-D pooling is 2-D pooling of height 1.
#include <algorithm>
#include <cmath>

#include "ops/pointwise.h"
#include "ops/structured.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

void check_images(const OpContext& ctx, Expr x) {
  if (register_dtype(x.dtype()) != DType::kF32) {
    throw DtypeError(ctx.name() + ": expected f32, got " + to_string(x.type()), ctx.location());
  }
  if (x.shape().size() == 4) return;
  throw ShapeError(ctx.name() + ": expected x [B, C, H, W], got " + to_string(x.shape()),
                   ctx.location());
}

void check_size(const OpContext& ctx, Size2d size) {
  check_shape(ctx.name(), {size.h, size.w}, ctx.location());
}

Tensor as_image(Tensor x, const char* name, Loc loc) {
  const OpContext ctx(name, loc);
  if (x.rank() != 3) {
    throw ShapeError(ctx.name() + ": expected x [B, C, L], got " + to_string(x.shape()),
                     ctx.location());
  }
  return unsqueeze(x, 2, loc);
}

// Windows with fewer elements are read element by element in one expression.
constexpr std::int64_t kLargeWindow = 17;

// Returns the number of windows along an axis, or 0 if the options are invalid; the 2-D op then
// reports them.
std::int64_t windows_along(std::int64_t length, std::int64_t kernel, std::int64_t stride,
                           std::int64_t padding, std::int64_t dilation) {
  if (kernel < 1 || stride < 1 || padding < 0 || padding > kernel / 2 || dilation < 1) return 0;
  const std::int64_t free = length + 2 * padding - (kernel - 1) * dilation - 1;
  return free < 0 ? 0 : free / stride + 1;
}

// True if windows overlap so much that pooling one axis after the other halves the reads or better.
bool pays_by_axes(const Shape& x, Size2d kernel, Size2d stride, Size2d padding, Size2d dilation) {
  const std::int64_t down = windows_along(x[2], kernel.h, stride.h, padding.h, dilation.h);
  const std::int64_t across = windows_along(x[3], kernel.w, stride.w, padding.w, dilation.w);
  if (down == 0 || across == 0 || kernel.h == 1 || kernel.w == 1) return false;
  const std::int64_t by_axes = x[2] * kernel.w + down * kernel.h;
  return kernel.h * kernel.w >= kLargeWindow && 2 * by_axes < down * kernel.h * kernel.w;
}

// Pools one axis after the other if that pays. The gradient of a maximum still goes to the first
// element in row-major order: the first row that has it, and the first column in this row.
Expr pool(OpContext& ctx, const OpDef& def, Expr x, Size2d kernel, Size2d stride, Size2d padding,
          Size2d dilation) {
  if (pays_by_axes(x.shape(), kernel, stride, padding, dilation)) {
    const Expr across =
        pool(ctx, def, x, {1, kernel.w}, {1, stride.w}, {0, padding.w}, {1, dilation.w});
    return pool(ctx, def, across, {kernel.h, 1}, {stride.h, 1}, {padding.h, 0}, {dilation.h, 1});
  }
  return op::apply(ctx.builder, def, {x},
                   {{"kernel", std::vector{kernel.h, kernel.w}},
                    {"stride", std::vector{stride.h, stride.w}},
                    {"padding", std::vector{padding.h, padding.w}},
                    {"dilation", std::vector{dilation.h, dilation.w}}});
}

template <class T>
Expr literal_list(OpContext& ctx, const std::vector<T>& values, DType dtype) {
  return op::literal(ctx.builder, values, {dtype, {static_cast<std::int64_t>(values.size())}});
}

// Broadcasts a list of numbers along `axis` to `shape`.
Expr along(Expr list, int axis, const Shape& shape) {
  Shape one(shape.size(), 1);
  one[static_cast<std::size_t>(axis)] = list.shape()[0];
  return op::broadcast(op::reshape(list, one), shape);
}

// Returns the elements `from` of an axis.
Expr take(OpContext& ctx, Expr x, int axis, const std::vector<std::int32_t>& from) {
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(from.size());
  return op::gather(x, along(literal_list(ctx, from, DType::kI32), axis, shape), axis);
}

// For each window along an axis, returns 1 / (number of its elements inside the input).
std::vector<float> shares(std::int64_t length, std::int64_t kernel, std::int64_t stride,
                          std::int64_t padding) {
  std::vector<float> list;
  for (std::int64_t at = -padding; at + kernel <= length + padding; at += stride) {
    const std::int64_t inside = std::min(at + kernel, length) - std::max<std::int64_t>(at, 0);
    list.push_back(1.0F / static_cast<float>(inside));
  }
  return list;
}

// Bins of an adaptive pool along an axis. Each is padded to `most` elements by repeating its last
// one.
struct Bins {
  std::int64_t most = 1;
  std::vector<std::int32_t> elements;
  // 1 / size, divided among an element and its repetitions, because 0 times infinity is NaN.
  std::vector<float> weights;
};

Bins adaptive_bins(std::int64_t length, std::int64_t count) {
  Bins bins;
  const auto first = [&](std::int64_t i) { return i * length / count; };
  const auto end = [&](std::int64_t i) { return ((i + 1) * length + count - 1) / count; };
  for (std::int64_t i = 0; i < count; ++i) bins.most = std::max(bins.most, end(i) - first(i));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t size = end(i) - first(i);
    for (std::int64_t j = 0; j < bins.most; ++j) {
      bins.elements.push_back(static_cast<std::int32_t>(first(i) + std::min(j, size - 1)));
      const std::int64_t copies = j < size - 1 ? 1 : bins.most - size + 1;
      bins.weights.push_back(1.0F / static_cast<float>(size * copies));
    }
  }
  return bins;
}

// Returns the means of the bins of an axis.
Expr mean_of_bins(OpContext& ctx, Expr x, int axis, std::int64_t count) {
  const auto a = static_cast<std::size_t>(axis);
  const Bins bins = adaptive_bins(x.shape()[a], count);
  const Expr taken = take(ctx, x, axis, bins.elements);
  const Expr weighed =
      taken * along(literal_list(ctx, bins.weights, DType::kF32), axis, taken.shape());
  Shape split = taken.shape();
  split[a] = count;
  split.insert(split.begin() + axis + 1, bins.most);
  return op::sum(op::reshape(weighed, split), {axis + 1});
}

// Selects element floor(i * length / size) of an axis, computed in f32 like PyTorch.
Expr nearest(OpContext& ctx, Expr x, int axis, std::int64_t size) {
  const std::int64_t length = x.shape()[static_cast<std::size_t>(axis)];
  if (size == length) return x;
  const float scale = static_cast<float>(length) / static_cast<float>(size);
  std::vector<std::int32_t> from;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::int64_t>(std::floor(static_cast<float>(i) * scale));
    from.push_back(static_cast<std::int32_t>(std::min(at, length - 1)));
  }
  return take(ctx, x, axis, from);
}

// Repeats each element of an axis `times` times.
Expr repeated(Expr x, int axis, std::int64_t times) {
  const auto a = static_cast<std::size_t>(axis);
  Shape shape = x.shape(), split = shape;
  split.insert(split.begin() + axis + 1, 1);
  const Expr one = op::reshape(x, split);
  split[a + 1] = times;
  shape[a] *= times;
  return op::reshape(op::broadcast(one, split), shape);
}

// Interpolates linearly along an axis between the two nearest elements.
Expr bilinear(OpContext& ctx, Expr x, int axis, std::int64_t size, bool align_corners) {
  const std::int64_t length = x.shape()[static_cast<std::size_t>(axis)];
  if (size == length) return x;
  std::vector<std::int32_t> low, high;
  std::vector<float> share;
  const float scale = !align_corners ? static_cast<float>(length) / static_cast<float>(size)
                      : size > 1     ? static_cast<float>(length - 1) / static_cast<float>(size - 1)
                                     : 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto step = static_cast<float>(i);
    const float place = align_corners ? scale * step : std::max(scale * (step + 0.5F) - 0.5F, 0.0F);
    const std::int64_t below = std::min(static_cast<std::int64_t>(place), length - 1);
    low.push_back(static_cast<std::int32_t>(below));
    high.push_back(static_cast<std::int32_t>(std::min(below + 1, length - 1)));
    share.push_back(std::clamp(place - static_cast<float>(below), 0.0F, 1.0F));
  }
  const Expr a = take(ctx, x, axis, low), b = take(ctx, x, axis, high);
  const Expr t = along(literal_list(ctx, share, DType::kF32), axis, a.shape());
  return a * (op::full_like(t, 1) - t) + b * t;
}

}  // namespace

Tensor max_pool2d(Tensor x, Size2d kernel, const MaxPool2dOptions& options, Loc loc) {
  const Composite composite("max_pool2d", loc);
  OpContext ctx("max_pool2d", loc);
  const Expr in = ctx.in(x);
  check_images(ctx, in);
  return ctx.out(pool(ctx, ops::max_pool, in, kernel, options.stride.value_or(kernel),
                      options.padding, options.dilation));
}

Tensor max_pool1d(Tensor x, std::int64_t kernel, const MaxPool1dOptions& options, Loc loc) {
  const Composite composite("max_pool1d", loc);
  const MaxPool2dOptions in_two = {.stride = Size2d{1, options.stride.value_or(kernel)},
                                   .padding = {0, options.padding},
                                   .dilation = {1, options.dilation}};
  return squeeze(max_pool2d(as_image(x, "max_pool1d", loc), {1, kernel}, in_two, loc), 2, loc);
}

Tensor avg_pool2d(Tensor x, Size2d kernel, const AvgPool2dOptions& options, Loc loc) {
  const Composite composite("avg_pool2d", loc);
  const Upcast downcast(x);
  OpContext ctx("avg_pool2d", loc);
  const Expr in = ctx.in(x);
  check_images(ctx, in);
  const Size2d stride = options.stride.value_or(kernel);
  const Size2d padding = options.padding;
  if (padding.h > kernel.h / 2 || padding.w > kernel.w / 2) {
    throw ShapeError(ctx.name() + ": padding must be at most half of the kernel, got " +
                         to_string({padding.h, padding.w}) + " for " +
                         to_string({kernel.h, kernel.w}),
                     ctx.location());
  }
  const Expr sums = pool(ctx, ops::sum_pool, in, kernel, stride, padding, 1);
  if (options.count_include_pad || (padding.h == 0 && padding.w == 0)) {
    return downcast(ctx.out(sums * (1.0 / static_cast<double>(kernel.h * kernel.w))));
  }
  const Shape from = in.shape(), to = sums.shape();
  const Expr down = literal_list(ctx, shares(from[2], kernel.h, stride.h, padding.h), DType::kF32);
  const Expr across =
      literal_list(ctx, shares(from[3], kernel.w, stride.w, padding.w), DType::kF32);
  return downcast(ctx.out(sums * along(down, 2, to) * along(across, 3, to)));
}

Tensor avg_pool1d(Tensor x, std::int64_t kernel, const AvgPool1dOptions& options, Loc loc) {
  const Composite composite("avg_pool1d", loc);
  const AvgPool2dOptions in_two = {.stride = Size2d{1, options.stride.value_or(kernel)},
                                   .padding = {0, options.padding},
                                   .count_include_pad = options.count_include_pad};
  return squeeze(avg_pool2d(as_image(x, "avg_pool1d", loc), {1, kernel}, in_two, loc), 2, loc);
}

Tensor adaptive_avg_pool2d(Tensor x, Size2d size, Loc loc) {
  const Composite composite("adaptive_avg_pool2d", loc);
  const Upcast downcast(x);
  OpContext ctx("adaptive_avg_pool2d", loc);
  const Expr in = ctx.in(x);
  check_images(ctx, in);
  check_size(ctx, size);
  const Shape shape = in.shape();
  if (shape[2] % size.h == 0 && shape[3] % size.w == 0) {
    return downcast(avg_pool2d(x, {shape[2] / size.h, shape[3] / size.w}, {}, loc));
  }
  return downcast(ctx.out(mean_of_bins(ctx, mean_of_bins(ctx, in, 3, size.w), 2, size.h)));
}

// Repeating the last element of a bin changes neither the maximum nor its first occurrence.
Tensor adaptive_max_pool2d(Tensor x, Size2d size, Loc loc) {
  const Composite composite("adaptive_max_pool2d", loc);
  OpContext ctx("adaptive_max_pool2d", loc);
  const Expr in = ctx.in(x);
  check_images(ctx, in);
  check_size(ctx, size);
  const Shape shape = in.shape();
  if (shape[2] % size.h == 0 && shape[3] % size.w == 0) {
    return max_pool2d(x, {shape[2] / size.h, shape[3] / size.w}, {}, loc);
  }
  const Bins down = adaptive_bins(shape[2], size.h), across = adaptive_bins(shape[3], size.w);
  const Expr taken = take(ctx, take(ctx, in, 3, across.elements), 2, down.elements);
  return max_pool2d(ctx.out(taken), {down.most, across.most}, {}, loc);
}

Tensor interpolate(Tensor x, Size2d size, Interpolation mode, bool align_corners, Loc loc) {
  const Composite composite("interpolate", loc);
  OpContext ctx("interpolate", loc);
  const Expr in = ctx.in(x);
  check_images(ctx, in);
  check_size(ctx, size);
  const Shape shape = in.shape();
  if (mode == Interpolation::kBilinear) {
    const Upcast downcast(x);
    const Expr rows = bilinear(ctx, ctx.in(x), 2, size.h, align_corners);
    return downcast(ctx.out(bilinear(ctx, rows, 3, size.w, align_corners)));
  }
  if (align_corners) {
    throw UserError(ctx.name() + ": align_corners is only supported for bilinear interpolation",
                    ctx.location());
  }
  if (size.h % shape[2] == 0 && size.w % shape[3] == 0) {
    return ctx.out(repeated(repeated(in, 3, size.w / shape[3]), 2, size.h / shape[2]));
  }
  return ctx.out(nearest(ctx, nearest(ctx, in, 2, size.h), 3, size.w));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
