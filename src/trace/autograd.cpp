// SPDX-License-Identifier: MIT
// Gradients inside a traced function. Checkpoints and custom gradients are recorded as identity ops
// that autodiff interprets (ops/marks.cpp).
#include "tensorgrad/ops/autograd.h"

#include <set>

#include "compile/gradients.h"
#include "ops/pointwise.h"
#include "ops/structured.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns the values created before node `start` that later nodes read, and the leaves created
// since.
std::vector<Expr> read_by_region(OpContext& ctx, ValueId start) {
  const Graph& graph = ctx.trace.graph;
  std::set<ValueId> found;
  for (ValueId id = start; id < graph.size(); ++id) {
    if (graph[id].op->kind == OpKind::kLeaf) found.insert(id);
    for (const ValueId input : graph[id].inputs) {
      if (input < start) found.insert(input);
    }
  }
  std::vector<Expr> values;
  values.reserve(found.size());
  for (const ValueId id : found) values.push_back({&ctx.builder, id});
  return values;
}

// Returns a placeholder of that type, which autodiff replaces.
Expr stand_in(OpContext& ctx, const Type& type) {
  return op::detach(op::full(ctx.builder, 0, type));
}

void check_gradients(const OpContext& ctx, const std::vector<Expr>& inputs,
                     const std::vector<Expr>& gradients) {
  if (gradients.size() != inputs.size()) {
    throw UserError(ctx.name() + ": backward must return one gradient for each of the " +
                        std::to_string(inputs.size()) + " inputs, got " +
                        std::to_string(gradients.size()),
                    ctx.location());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (gradients[i].type() == inputs[i].type()) continue;
    throw ShapeError(ctx.name() + ": the gradient of input " + std::to_string(i) + " must be " +
                         to_string(inputs[i].type()) + ", got " + to_string(gradients[i].type()),
                     ctx.location());
  }
}

}  // namespace

std::vector<Tensor> grad(Tensor loss, const std::vector<Tensor>& wrt, Loc loc) {
  OpContext ctx("grad", loc);
  std::vector<ValueId> ids;
  ids.reserve(wrt.size());
  for (const Tensor& each : wrt) ids.push_back(ctx.in(each).id);
  std::vector<Tensor> result;
  const ValueId of = ctx.in(cast_if_autocast(loss, DType::kF32, ctx.location())).id;
  for (const ValueId id : gradients(ctx.trace.graph, of, ids)) {
    result.push_back(ctx.trace.tensor(id));
  }
  return result;
}

Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs, Loc loc) {
  OpContext ctx("checkpoint", loc);
  const ValueId start = ctx.trace.graph.size();
  const Expr y = ctx.in(function(inputs));
  if (y.id < start) return ctx.out(y);
  std::vector<Expr> operands = {y};
  const std::vector<Expr> read = read_by_region(ctx, start);
  operands.insert(operands.end(), read.begin(), read.end());
  return ctx.out(op::apply(ctx.builder, ops::checkpoint, operands));
}

Tensor custom_gradient(const std::vector<Tensor>& inputs,
                       const std::function<Tensor(const std::vector<Tensor>& inputs)>& forward,
                       const std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                               Tensor y, Tensor dy)>& backward,
                       Loc loc) {
  OpContext ctx("custom_gradient", loc);
  const Expr y = ctx.in(cast_if_autocast(forward(inputs), DType::kF32, ctx.location()));
  if (y.dtype() != DType::kF32) {
    throw DtypeError(ctx.name() + ": forward must return f32, got " + to_string(y.type()),
                     ctx.location());
  }
  const Expr dy = stand_in(ctx, y.type()), result = stand_in(ctx, y.type());
  std::vector<Expr> gradients, operands = {y};
  for (const Tensor& each : inputs) operands.push_back(ctx.in(each));
  for (const Tensor& each : backward(inputs, ctx.out(result), ctx.out(dy))) {
    const std::size_t i = gradients.size();
    gradients.push_back(ctx.in(
        i < inputs.size() ? cast_if_autocast(each, inputs[i].dtype(), ctx.location()) : each));
  }
  check_gradients(ctx, {operands.begin() + 1, operands.end()}, gradients);
  operands.insert(operands.end(), {dy, result});
  operands.insert(operands.end(), gradients.begin(), gradients.end());
  return ctx.out(op::apply(ctx.builder, ops::custom_gradient, operands));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
