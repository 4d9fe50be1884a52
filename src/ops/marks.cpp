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

constinit const OpDef barrier = {.name = "barrier",
                                 .kind = OpKind::kView,
                                 .arity = 1,
                                 .infer = infer_same,
                                 .grad = grad_barrier,
                                 .eval = eval_same,
                                 .view = view_all,
                                 .code = nullptr,
                                 .samples = {{}},
                                 .barrier = true};
constinit const OpDef checkpoint = {.name = "checkpoint",
                                    .kind = OpKind::kView,
                                    .arity = -1,
                                    .infer = infer_same,
                                    .grad = nullptr,
                                    .eval = eval_same,
                                    .view = view_all,
                                    .code = nullptr,
                                    .samples = {{}}};
constinit const OpDef custom_gradient = {.name = "custom_gradient",
                                         .kind = OpKind::kView,
                                         .arity = -1,
                                         .infer = infer_same,
                                         .grad = nullptr,
                                         .eval = eval_same,
                                         .view = view_all,
                                         .code = nullptr,
                                         .samples = {{}}};

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
