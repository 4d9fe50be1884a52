// SPDX-License-Identifier: MIT
// Sort order of the elements along an axis.
#include <algorithm>
#include <cmath>
#include <numeric>

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

// NaN is the largest. The sort is stable.
void eval_argsort(const EvalContext& ctx, RefTensor& out) {
  const std::vector<double>& x = ctx.inputs[0]->data;
  const AxisSplit split = split_at(out.type.shape, ctx.node.attrs.integer("axis"));
  const bool descending = ctx.node.attrs.integer("descending") != 0;
  out.data.resize(x.size());
  std::vector<std::int64_t> order(static_cast<std::size_t>(split.size));
  for (std::int64_t line = 0; line < split.pre * split.post; ++line) {
    const auto at = [&](std::int64_t t) { return split.element(line, t); };
    const auto below = [&](double l, double r) {
      return l < r || (std::isnan(r) && !std::isnan(l));
    };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t l, std::int64_t r) {
      return descending ? below(x[at(r)], x[at(l)]) : below(x[at(l)], x[at(r)]);
    });
    for (std::int64_t i = 0; i < split.size; ++i) {
      out.data[at(i)] = static_cast<double>(order[static_cast<std::size_t>(i)]);
    }
  }
}

}  // namespace

namespace ops {

constinit const OpDef argsort =
    make_op("argsort", OpKind::kSort, 1, infer_argsort, nullptr, eval_argsort);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
