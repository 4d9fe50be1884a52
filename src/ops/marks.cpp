// SPDX-License-Identifier: MIT
// Identity ops that annotate values: barrier for fusion, checkpoint and custom_gradient for
// autodiff. After autodiff, the latter two are views of their entire first operand.
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

Type infer_same(std::span<const Type> in, const Attrs&) { return in[0]; }

View view_all(const Type& in, const Attrs&) { return View::contiguous(in.shape); }

void eval_same(const EvalContext& ctx, RefTensor& out) { out.data = ctx.inputs[0]->data; }

std::vector<ValueId> grad_barrier(GradContext& ctx) { return {ctx.dy().id}; }

}  // namespace

namespace ops {

constinit const OpDef barrier =
    make_view_op("barrier", 1, infer_same, grad_barrier, eval_same, view_all, /*barrier=*/true);
constinit const OpDef checkpoint =
    make_view_op("checkpoint", -1, infer_same, nullptr, eval_same, view_all);
constinit const OpDef custom_gradient =
    make_view_op("custom_gradient", -1, infer_same, nullptr, eval_same, view_all);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
