// SPDX-License-Identifier: MIT
// Sort order of the elements along an axis.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kernel/topk.h"
#include "ops/expr.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// attrs: axis, descending (0 or 1)
Type infer_argsort(std::span<const Type> in, const Attrs& attrs) {
  check_axis(attrs.integer("axis"), in[0].shape);
  const std::int64_t descending = attrs.integer("descending");
  if (descending != 0 && descending != 1) shape_error("descending must be 0 or 1");
  if (in[0].dtype == DType::kBool) dtype_error("expected f32, i32 or u32, got bool");
  return {DType::kI32, in[0].shape};
}

// Sets `out` to the places of the first elements of each line in sort order. NaN is the largest.
// The sort is stable.
void order_lines(const EvalContext& ctx, RefTensor& out) {
  const RefTensor& x = *ctx.inputs[0];
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  const AxisSplit from = split_at(x.type.shape, axis), to = split_at(out.type.shape, axis);
  const bool descending = ctx.node.attrs.integer("descending") != 0;
  out.data.resize(static_cast<std::size_t>(numel(out.type.shape)));
  std::vector<std::int64_t> order(static_cast<std::size_t>(from.size));
  for (std::int64_t line = 0; line < from.pre * from.post; ++line) {
    const auto at = [&](std::int64_t t) { return x.data[from.element(line, t)]; };
    const auto below = [&](double l, double r) {
      return l < r || (std::isnan(r) && !std::isnan(l));
    };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t l, std::int64_t r) {
      return descending ? below(at(r), at(l)) : below(at(l), at(r));
    });
    for (std::int64_t i = 0; i < to.size; ++i) {
      out.data[to.element(line, i)] = static_cast<double>(order[static_cast<std::size_t>(i)]);
    }
  }
}

// attrs: those of argsort, and k
Type infer_topk(std::span<const Type> in, const Attrs& attrs) {
  Type type = infer_argsort(in, attrs);
  std::int64_t& size = type.shape[static_cast<std::size_t>(attrs.integer("axis"))];
  const std::int64_t k = attrs.integer("k");
  if (k < 1 || k > size) {
    shape_error("expected k in [1, " + std::to_string(size) + "], got " + std::to_string(k));
  }
  size = k;
  return type;
}

ValueId expand_topk(ExpandContext& ctx) {
  const Attrs& attrs = ctx.node.attrs;
  const Attrs of_sort = {{"axis", attrs.integer("axis")},
                         {"descending", attrs.integer("descending")}};
  const Expr order = op::apply(ctx.builder, ops::argsort, {ctx.in(0)}, of_sort);
  return op::slice(order, std::vector<std::int64_t>(order.shape().size(), 0), ctx.node.type.shape)
      .id;
}

std::shared_ptr<const OpaqueKernel> topk_kernel(std::span<const Type> in, const Attrs& attrs) {
  const AxisSplit lines = split_at(in[0].shape, attrs.integer("axis"));
  return std::make_shared<TopkKernel>(lines.pre, lines.size, lines.post, attrs.integer("k"),
                                      attrs.integer("descending") != 0);
}

}  // namespace

namespace ops {

constinit const OpDef argsort =
    make_op("argsort", OpKind::kSort, 1, infer_argsort, nullptr, order_lines);

// The first k of argsort.
constinit const OpDef topk_indices =
    make_opaque_op("topk_indices", 1, topk_kernel, infer_topk, nullptr, order_lines, expand_topk);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
