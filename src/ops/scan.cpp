// SPDX-License-Identifier: MIT
// Scans along an axis: each element of the result is made of all elements of its line up to there
// (reverse: from there on). The linear recurrence h[t] = a[t] * h[t-1] + b[t] is the general one:
// its gradient is the same recurrence backwards (Martin and Cundy 2018, eq. 6 and 7).
#include <cmath>

#include "ops/pointwise.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// attrs: axis, reverse (0 or 1)
void check_line(const Attrs& attrs, const Shape& shape) {
  check_axis(attrs.integer("axis"), shape);
  const std::int64_t reverse = attrs.integer("reverse");
  if (reverse != 0 && reverse != 1) shape_error("reverse must be 0 or 1");
}

Type infer_fold(std::span<const Type> in, const Attrs& attrs) {
  check_line(attrs, in[0].shape);
  if (in[0].dtype == DType::kBool) dtype_error("expected f32, i32 or u32, got bool");
  return in[0];
}

Type infer_linear(std::span<const Type> in, const Attrs& attrs) {
  check_line(attrs, in[0].shape);
  for (const Type& type : in) {
    if (type.dtype != DType::kF32) dtype_error("expected f32, got " + to_string(type));
  }
  if (in[0].shape != in.back().shape) {
    shape_error("shapes differ: a " + to_string(in[0].shape) + ", b " + to_string(in[1].shape));
  }
  return in[0];
}

Type infer_place(std::span<const Type> in, const Attrs& attrs) {
  return {DType::kI32, infer_fold(in, attrs).shape};
}

// Calls visit(element, its place in the line, first of the scan?) in the order of the scan.
template <class Visit>
void for_each_line(const EvalContext& ctx, const Visit& visit) {
  const AxisSplit split = split_at(ctx.inputs[0]->type.shape, ctx.node.attrs.integer("axis"));
  const bool reverse = ctx.node.attrs.integer("reverse") != 0;
  for (std::int64_t line = 0; line < split.pre * split.post; ++line) {
    for (std::int64_t i = 0; i < split.size; ++i) {
      const std::int64_t t = reverse ? split.size - 1 - i : i;
      visit(split.element(line, t), t, i == 0);
    }
  }
}

// h * a, modulo 2^32 for integers: both halves of h by themselves, so that double is exact.
double times(DType dtype, double h, double a) {
  if (dtype == DType::kF32) return h * a;
  const double low = std::fmod(h, 0x1p16), high = h - low;
  return wrap(dtype, std::fmod(high * a, 0x1p32) + low * a);
}

// h = a * h + b; without a: 1; without b: 0, and h begins as 1.
template <bool kHasA, bool kHasB>
void eval_linear(const EvalContext& ctx, RefTensor& out) {
  const std::vector<double>& a = ctx.inputs[0]->data;
  const std::vector<double>& b = ctx.inputs.back()->data;
  out.data.resize(a.size());
  double h = 0;
  for_each_line(ctx, [&](std::size_t at, std::int64_t, bool first) {
    if (first) h = kHasB ? 0 : 1;
    if (kHasA) h = times(out.type.dtype, h, a[at]);
    if (kHasB) h = wrap(out.type.dtype, h + b[at]);
    out.data[at] = h;
  });
}

template <bool kMax>
void eval_arg(const EvalContext& ctx, RefTensor& out) {
  const std::vector<double>& x = ctx.inputs[0]->data;
  out.data.resize(x.size());
  double best = 0;
  std::int64_t where = 0;
  for_each_line(ctx, [&](std::size_t at, std::int64_t t, bool first) {
    const bool reached = kMax ? x[at] >= best : x[at] <= best;
    if (first || reached || std::isnan(x[at])) {
      best = x[at];
      where = t;
    }
    out.data[at] = static_cast<double>(where);
  });
}

// What a gradient rule needs of its scan.
struct Line {
  explicit Line(const GradContext& ctx)
      : axis(ctx.self().attrs.integer("axis")), reverse(ctx.self().attrs.integer("reverse")) {}

  // x moved along the scan: the element before each (after: behind it); zero where there is none.
  [[nodiscard]] Expr moved(Expr x, bool after) const {
    const Shape shape = x.shape();
    const auto a = static_cast<std::size_t>(axis);
    const bool up = (reverse != 0) == after;  // to larger indices
    std::vector<std::int64_t> start(shape.size(), 0), stop = shape;
    std::vector<std::int64_t> before(shape.size(), 0), behind(shape.size(), 0);
    (up ? stop[a] : start[a]) += up ? -1 : 1;
    (up ? before : behind)[a] = 1;
    if (shape[a] == 1) return op::full_like(x, 0);
    return op::pad(op::slice(x, start, stop), before, behind);
  }

  [[nodiscard]] Attrs backwards() const { return {{"axis", axis}, {"reverse", 1 - reverse}}; }

  // g[t] = dy[t] + a[t+1] * g[t+1]
  [[nodiscard]] Expr flow_back(GradContext& ctx, Expr a) const {
    return op::apply(ctx.builder, ops::linear_recurrence, {moved(a, true), ctx.dy()}, backwards());
  }

  std::int64_t axis, reverse;
};

std::vector<ValueId> grad_cumsum(GradContext& ctx) {
  if (ctx.in(0).dtype() != DType::kF32) return {kNoValue};
  return {op::apply(ctx.builder, ops::cumsum, {ctx.dy()}, Line(ctx).backwards()).id};
}

// da[t] = g[t] * h[t-1], where h[-1] is 1: nothing is divided, so an element may be 0.
std::vector<ValueId> grad_product(GradContext& ctx) {
  if (ctx.in(0).dtype() != DType::kF32) return {kNoValue};
  const Line line(ctx);
  const Shape shape = ctx.in(0).shape();
  const Expr g = line.flow_back(ctx, ctx.in(0));
  const Expr place = op::iota(ctx.builder, shape, static_cast<int>(line.axis), DType::kI32);
  const auto first =
      line.reverse != 0 ? static_cast<double>(shape[static_cast<std::size_t>(line.axis)] - 1) : 0.0;
  const Expr before = op::where(op::eq(place, first), 1, line.moved(ctx.y(), false));
  return {(g * before).id};
}

// da[t] = g[t] * h[t-1], db[t] = g[t]
std::vector<ValueId> grad_linear(GradContext& ctx) {
  const Line line(ctx);
  const Expr g = line.flow_back(ctx, ctx.in(0));
  return {(g * line.moved(ctx.y(), false)).id, g.id};
}

constexpr OpDef scan(const char* name, int arity, InferFn infer, GradFn grad, EvalFn eval) {
  return make_op(name, OpKind::kScan, arity, infer, grad, eval);
}

}  // namespace

namespace ops {

constinit const OpDef cumsum = scan("cumsum", 1, infer_fold, grad_cumsum, eval_linear<false, true>);
constinit const OpDef cumprod =
    scan("cumprod", 1, infer_fold, grad_product, eval_linear<true, false>);
constinit const OpDef linear_recurrence =
    scan("linear_recurrence", 2, infer_linear, grad_linear, eval_linear<true, true>);
// i32: where the largest (smallest) element so far stands; the last of equals; a NaN wins.
constinit const OpDef arg_cummax = scan("arg_cummax", 1, infer_place, nullptr, eval_arg<true>);
constinit const OpDef arg_cummin = scan("arg_cummin", 1, infer_place, nullptr, eval_arg<false>);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
