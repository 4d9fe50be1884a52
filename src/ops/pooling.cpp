// SPDX-License-Identifier: MIT
// Pooling over windows of [B, C, H, W] -> [B, C, Ho, Wo], and the adjoints. attrs: kernel, stride,
// padding, dilation, each [h, w]. Adjoints also have size, the [h, w] of their result.
//   sum_pool:        y[n] = sum over j of x[n * stride + j * dilation - padding]
//   sum_unpool:      x[i] = sum of y over the windows that contain i
//   max_pool:        y[n] = maximum of x in window n; NaN if there is one; ignores padding
//   max_pool_index:  row-major index in the window of the first such x, i32
//   max_unpool:      x[i] = sum of y over the windows whose index selects i
//   max_pick:        y[n] = the x that the window's index selects
// sum_pool and sum_unpool are each other's gradients, as are max_pick and max_unpool. max_pool has
// the gradient of max_pick.
#include <cmath>
#include <limits>

#include "ops/pointwise.h"
#include "ops/window.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Windows with at most this number of elements are read element by element in one expression. This
// is cheaper than a reduction of short rows.
constexpr std::int64_t kFewTaps = 16;

Windows windows_of(const Attrs& attrs) { return Windows::of(attrs, attrs.list("kernel")); }

void check_images(const Type& type) {
  if (type.dtype != DType::kF32) dtype_error("expected f32, got " + to_string(type));
  if (type.shape.size() != 4) {
    shape_error("expected x [B, C, H, W], got " + to_string(type.shape));
  }
}

Shape pooled_shape(const Shape& x, const Windows& windows) {
  return {x[0], x[1], windows.h.count(x[2]), windows.w.count(x[3])};
}

Type infer_pool(std::span<const Type> in, const Attrs& attrs) {
  check_images(in[0]);
  const Windows windows = windows_of(attrs);
  windows.check(in[0].shape[2], in[0].shape[3]);
  return {DType::kF32, pooled_shape(in[0].shape, windows)};
}

// A window with only padding would have no maximum.
Type infer_max(std::span<const Type> in, const Attrs& attrs) {
  const Windows windows = windows_of(attrs);
  for (const WindowAxis& window : {windows.h, windows.w}) {
    if (window.padding > window.size / 2) {
      shape_error("padding must be at most half of the kernel, got " +
                  std::to_string(window.padding) + " for " + std::to_string(window.size));
    }
  }
  return infer_pool(in, attrs);
}

Type infer_max_index(std::span<const Type> in, const Attrs& attrs) {
  return {DType::kI32, infer_max(in, attrs).shape};
}

Type infer_unpool(std::span<const Type> in, const Attrs& attrs) {
  check_images(in[0]);
  const auto& size = attrs.list("size");
  const Windows windows = windows_of(attrs);
  windows.check(size[0], size[1]);
  const Shape& y = in[0].shape;
  const Shape x = {y[0], y[1], size[0], size[1]};
  if (pooled_shape(x, windows) != y) {
    shape_error(to_string(y) + " is not the pooled shape of " + to_string(x));
  }
  return {DType::kF32, x};
}

void check_window_index(const Type& index, const Shape& expected) {
  if (index.dtype != DType::kI32) dtype_error("expected an i32 index, got " + to_string(index));
  if (index.shape != expected) {
    shape_error("expected an index " + to_string(expected) + ", got " + to_string(index.shape));
  }
}

Type infer_max_unpool(std::span<const Type> in, const Attrs& attrs) {
  check_window_index(in[1], in[0].shape);
  return infer_unpool(in, attrs);
}

Type infer_max_pick(std::span<const Type> in, const Attrs& attrs) {
  const Type type = infer_pool(in, attrs);
  check_window_index(in[1], type.shape);
  return type;
}

// Calls visit(index in y, index j in the window, index in x) for every element of every window.
template <class Visit>
void for_each_tap(const Shape& x, const Shape& y, const Windows& windows, const Visit& visit) {
  const WindowAxis &h = windows.h, &w = windows.w;
  for (std::int64_t n = 0; n < numel(y); ++n) {
    const std::int64_t image = n / (y[2] * y[3]), top = n / y[3] % y[2], left = n % y[3];
    for (std::int64_t j = 0; j < windows.taps(); ++j) {
      const std::int64_t row = top * h.step + j / w.size * h.dilation - h.padding;
      const std::int64_t col = left * w.step + j % w.size * w.dilation - w.padding;
      if (row < 0 || row >= x[2] || col < 0 || col >= x[3]) continue;
      visit(static_cast<std::size_t>(n), j,
            static_cast<std::size_t>((image * x[2] + row) * x[3] + col));
    }
  }
}

void eval_sum_pool(const EvalContext& ctx, RefTensor& out) {
  const RefTensor& x = *ctx.inputs[0];
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  for_each_tap(x.type.shape, out.type.shape, windows_of(ctx.node.attrs),
               [&](std::size_t n, std::int64_t, std::size_t i) { out.data[n] += x.data[i]; });
}

void eval_sum_unpool(const EvalContext& ctx, RefTensor& out) {
  const RefTensor& y = *ctx.inputs[0];
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  for_each_tap(out.type.shape, y.type.shape, windows_of(ctx.node.attrs),
               [&](std::size_t n, std::int64_t, std::size_t i) { out.data[i] += y.data[n]; });
}

template <bool kIndex>
void eval_max(const EvalContext& ctx, RefTensor& out) {
  const RefTensor& x = *ctx.inputs[0];
  const auto count = static_cast<std::size_t>(numel(out.type.shape));
  std::vector<double> best(count);
  std::vector<std::int64_t> where(count, -1);
  for_each_tap(x.type.shape, out.type.shape, windows_of(ctx.node.attrs),
               [&](std::size_t n, std::int64_t j, std::size_t i) {
                 const double v = x.data[i];
                 const bool better = v > best[n] || std::isnan(v);
                 if (where[n] >= 0 && (std::isnan(best[n]) || !better)) return;
                 best[n] = v;
                 where[n] = j;
               });
  if constexpr (kIndex) {
    out.data.assign(where.begin(), where.end());
  } else {
    out.data = std::move(best);
  }
}

void eval_max_unpool(const EvalContext& ctx, RefTensor& out) {
  const RefTensor &y = *ctx.inputs[0], &index = *ctx.inputs[1];
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  for_each_tap(out.type.shape, y.type.shape, windows_of(ctx.node.attrs),
               [&](std::size_t n, std::int64_t j, std::size_t i) {
                 if (index.data[n] == static_cast<double>(j)) out.data[i] += y.data[n];
               });
}

void eval_max_pick(const EvalContext& ctx, RefTensor& out) {
  const RefTensor &x = *ctx.inputs[0], &index = *ctx.inputs[1];
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  for_each_tap(x.type.shape, out.type.shape, windows_of(ctx.node.attrs),
               [&](std::size_t n, std::int64_t j, std::size_t i) {
                 if (index.data[n] == static_cast<double>(j)) out.data[n] += x.data[i];
               });
}

// Returns the window attributes of another node. With `x`, adds the size of an adjoint's result.
Attrs pool_geometry(const Attrs& attrs, const Shape* x = nullptr) {
  Attrs same = {{"kernel", attrs.list("kernel")},
                {"stride", attrs.list("stride")},
                {"padding", attrs.list("padding")},
                {"dilation", attrs.list("dilation")}};
  if (x != nullptr) same.set("size", std::vector<std::int64_t>{(*x)[2], (*x)[3]});
  return same;
}

std::vector<ValueId> grad_sum_pool(GradContext& ctx) {
  const Shape x = ctx.in(0).shape();
  return {
      op::apply(ctx.builder, ops::sum_unpool, {ctx.dy()}, pool_geometry(ctx.self().attrs, &x)).id};
}

std::vector<ValueId> grad_sum_unpool(GradContext& ctx) {
  return {op::apply(ctx.builder, ops::sum_pool, {ctx.dy()}, pool_geometry(ctx.self().attrs)).id};
}

ValueId unpool(GradContext& ctx, Expr index) {
  const Shape x = ctx.in(0).shape();
  return op::apply(ctx.builder, ops::max_unpool, {ctx.dy(), index},
                   pool_geometry(ctx.self().attrs, &x))
      .id;
}

std::vector<ValueId> grad_max_pool(GradContext& ctx) {
  const Attrs attrs = pool_geometry(ctx.self().attrs);
  return {unpool(ctx, op::apply(ctx.builder, ops::max_pool_index, {ctx.in(0)}, attrs))};
}

std::vector<ValueId> grad_max_unpool(GradContext& ctx) {
  const Attrs attrs = pool_geometry(ctx.self().attrs);
  return {op::apply(ctx.builder, ops::max_pick, {ctx.dy(), ctx.in(1)}, attrs).id, kNoValue};
}

std::vector<ValueId> grad_max_pick(GradContext& ctx) { return {unpool(ctx, ctx.in(1)), kNoValue}; }

// Returns element j of every window, [B, C, Ho, Wo].
Expr tap(Expr all, std::int64_t j) {
  const Shape shape = all.shape();
  const std::int64_t row = j / shape[5], col = j % shape[5];
  const Expr one = op::slice(all, {0, 0, 0, 0, row, col},
                             {shape[0], shape[1], shape[2], shape[3], row + 1, col + 1});
  return op::reshape(one, {shape[0], shape[1], shape[2], shape[3]});
}

// [B, C, Ho, Wo, kh * kw]
Expr joined(Expr all) {
  const Shape shape = all.shape();
  return op::reshape(all, {shape[0], shape[1], shape[2], shape[3], shape[4] * shape[5]});
}

// Returns the index within its window of every element of [B, C, Ho, Wo, kh, kw].
Expr place_in_window(Builder& builder, const Shape& all) {
  const Expr number = op::iota(builder, {all[4] * all[5]}, 0, DType::kI32);
  return op::broadcast(op::reshape(number, {all[4], all[5]}), all);
}

Expr repeated(Expr y, const Windows& windows) {
  Shape shape = y.shape();
  shape.insert(shape.end(), {1, 1});
  const Expr one = op::reshape(y, shape);
  shape[4] = windows.h.size;
  shape[5] = windows.w.size;
  return op::broadcast(one, shape);
}

ValueId expand_sum_pool(ExpandContext& ctx) {
  const Windows windows = windows_of(ctx.node.attrs);
  const Expr all = op::windows_of(op::padded(ctx.in(0), windows), windows);
  if (windows.taps() > kFewTaps) return op::sum(all, {4, 5}).id;
  Expr total = tap(all, 0);
  for (std::int64_t j = 1; j < windows.taps(); ++j) total = total + tap(all, j);
  return total.id;
}

ValueId expand_sum_unpool(ExpandContext& ctx) {
  const Windows windows = windows_of(ctx.node.attrs);
  const Shape& x = ctx.node.type.shape;
  return op::add_windows(repeated(ctx.in(0), windows), windows, x[2], x[3]).id;
}

// Returns the windows of x padded with -inf.
Expr max_windows(ExpandContext& ctx, const Windows& windows) {
  Expr x = ctx.in(0);
  if (windows.h.padding > 0 || windows.w.padding > 0) {
    const Expr inside = op::full(ctx.builder, 1, {DType::kBool, x.shape()});
    x = op::where(op::padded(inside, windows), op::padded(x, windows),
                  -std::numeric_limits<double>::infinity());
  }
  return op::windows_of(x, windows);
}

ValueId expand_max_pool(ExpandContext& ctx) {
  const Windows windows = windows_of(ctx.node.attrs);
  const Expr all = max_windows(ctx, windows);
  if (windows.taps() > kFewTaps) {
    return op::apply(ctx.builder, ops::reduce_max, {joined(all)},
                     {{"axes", std::vector<std::int64_t>{4}}})
        .id;
  }
  Expr best = tap(all, 0);
  for (std::int64_t j = 1; j < windows.taps(); ++j) best = op::maximum(best, tap(all, j));
  return best.id;
}

// For the windows along an axis: whether element `place` is inside x, and the first element inside
// x.
struct Inside {
  Expr inside, first;
};

Inside inside_of(Expr place, int axis, const WindowAxis& window, std::int64_t length) {
  const Expr start = op::iota(*place.builder, place.shape(), axis, DType::kI32) *
                         static_cast<double>(window.step) -
                     static_cast<double>(window.padding);
  const auto dilation = static_cast<double>(window.dilation);
  const Expr row = start + place * dilation;
  return {op::logical_and(op::ge(row, 0), op::lt(row, static_cast<double>(length))),
          (op::maximum(-start, 0) + (dilation - 1)) / dilation};
}

// If all elements of a window are -inf, the index must be that of the first element of x, not of
// padding.
Expr first_inside(Expr index, const Windows& windows, const Shape& x) {
  if (windows.h.padding == 0 && windows.w.padding == 0) return index;
  const auto width = static_cast<double>(windows.w.size);
  const Inside h = inside_of(index / width, 2, windows.h, x[2]);
  const Inside w = inside_of(op::fmod(index, width), 3, windows.w, x[3]);
  return op::where(op::logical_and(h.inside, w.inside), index, h.first * width + w.first);
}

// Finds the first NaN if there is one, otherwise the first maximum.
ValueId expand_max_index(ExpandContext& ctx) {
  const Windows windows = windows_of(ctx.node.attrs);
  const Expr all = max_windows(ctx, windows);
  if (windows.taps() > kFewTaps) {
    const Expr index = op::apply(ctx.builder, ops::argmax, {joined(all)},
                                 {{"axes", std::vector<std::int64_t>{4}}});
    return first_inside(index, windows, ctx.in(0).shape()).id;
  }
  Expr best = tap(all, 0);
  Expr index = op::full(ctx.builder, 0, {DType::kI32, best.shape()});
  for (std::int64_t j = 1; j < windows.taps(); ++j) {
    const Expr next = tap(all, j);
    const Expr larger = op::logical_or(op::gt(next, best), op::isnan(next));
    const Expr better = op::logical_and(larger, op::logical_not(op::isnan(best)));
    index = op::where(better, static_cast<double>(j), index);
    best = op::maximum(best, next);
  }
  return first_inside(index, windows, ctx.in(0).shape()).id;
}

ValueId expand_max_unpool(ExpandContext& ctx) {
  const Windows windows = windows_of(ctx.node.attrs);
  const Expr y = repeated(ctx.in(0), windows), index = repeated(ctx.in(1), windows);
  const Expr hit = op::eq(index, place_in_window(ctx.builder, index.shape()));
  const Shape& x = ctx.node.type.shape;
  return op::add_windows(op::where(hit, y, 0), windows, x[2], x[3]).id;
}

ValueId expand_max_pick(ExpandContext& ctx) {
  const Windows windows = windows_of(ctx.node.attrs);
  const Expr all = op::windows_of(op::padded(ctx.in(0), windows), windows);
  const Expr index = repeated(ctx.in(1), windows);
  const Expr hit = op::eq(index, place_in_window(ctx.builder, index.shape()));
  return op::sum(op::where(hit, all, 0), {4, 5}).id;
}

}  // namespace

namespace ops {

constinit const OpDef sum_pool =
    make_composite_op("sum_pool", 1, infer_pool, grad_sum_pool, eval_sum_pool, expand_sum_pool);
constinit const OpDef sum_unpool = make_composite_op("sum_unpool", 1, infer_unpool, grad_sum_unpool,
                                                     eval_sum_unpool, expand_sum_unpool);
constinit const OpDef max_pool =
    make_composite_op("max_pool", 1, infer_max, grad_max_pool, eval_max<false>, expand_max_pool);
constinit const OpDef max_pool_index = make_composite_op("max_pool_index", 1, infer_max_index,
                                                         nullptr, eval_max<true>, expand_max_index);
constinit const OpDef max_unpool = make_composite_op(
    "max_unpool", 2, infer_max_unpool, grad_max_unpool, eval_max_unpool, expand_max_unpool);
constinit const OpDef max_pick =
    make_composite_op("max_pick", 2, infer_max_pick, grad_max_pick, eval_max_pick, expand_max_pick);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
