// SPDX-License-Identifier: MIT
// Walks the forward nodes backwards; every node's rule gives the gradients of its inputs, which are
// added up in the order they arrive.
#include "passes/autodiff.h"

#include "base/check.h"
#include "ops/pointwise.h"

namespace tensorgrad {
namespace {

// Which nodes lie between some of `wrt` and the loss: only their gradients are wanted.
std::vector<bool> depends_on(const Graph& graph, std::span<const ValueId> wrt) {
  std::vector<bool> depends(graph.nodes.size(), false);
  for (const ValueId id : wrt) depends[static_cast<size_t>(id)] = true;
  for (ValueId id = 0; id < graph.size(); ++id) {
    for (const ValueId input : graph[id].inputs) {
      if (depends[static_cast<size_t>(input)]) depends[static_cast<size_t>(id)] = true;
    }
  }
  return depends;
}

void check_loss(const Graph& graph, ValueId loss) {
  const Node& node = graph[loss];
  if (!node.type.shape.empty()) {
    throw ShapeError("gradient: the loss must be a scalar, got " + to_string(node.type.shape) +
                         "; reduce it with mean() or sum()",
                     node.site);
  }
  if (node.type.dtype != DType::kF32) {
    throw DtypeError("gradient: the loss must be f32, got " + to_string(node.type), node.site);
  }
}

std::string grad_origin(const Node& node) {
  const std::string& of = node.origin.empty() ? node.op->name : node.origin;
  return of.ends_with(".grad") ? of : of + ".grad";
}

}  // namespace

std::vector<ValueId> autodiff(Graph& graph, ValueId loss, std::span<const ValueId> wrt) {
  check_loss(graph, loss);
  const std::vector<bool> wanted = depends_on(graph, wrt);
  const auto forward_size = static_cast<size_t>(graph.size());
  std::vector<ValueId> grads(forward_size, kNoValue);
  {
    Builder seed{graph, graph[loss].site, "loss.grad"};
    grads[static_cast<size_t>(loss)] = op::constant(seed, 1.0, DType::kF32).id;
  }
  for (ValueId id = loss; id >= 0; --id) {
    const ValueId dy = grads[static_cast<size_t>(id)];
    const Node node = graph[id];
    if (dy == kNoValue || !wanted[static_cast<size_t>(id)] || node.op->grad == nullptr) continue;
    Builder builder{graph, node.site, grad_origin(node)};
    GradContext ctx(builder, graph, id, dy);
    const std::vector<ValueId> gradients = node.op->grad(ctx);
    CHECK(gradients.size() == node.inputs.size(), node.op->name);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto input = static_cast<size_t>(node.inputs[i]);
      if (gradients[i] == kNoValue || !wanted[input]) continue;
      CHECK(graph[gradients[i]].type == graph[node.inputs[i]].type,
            std::string(node.op->name) + ": its gradient has type " +
                to_string(graph[gradients[i]].type));
      ValueId& total = grads[input];
      total =
          total == kNoValue ? gradients[i] : (Ex{&builder, total} + Ex{&builder, gradients[i]}).id;
    }
  }
  std::vector<ValueId> result;
  for (const ValueId id : wrt) {
    ValueId gradient =
        static_cast<size_t>(id) < forward_size ? grads[static_cast<size_t>(id)] : kNoValue;
    if (gradient == kNoValue) {
      Builder zero{graph, graph[id].site, kZeroGradient};
      gradient = op::full(zero, 0.0, Type(graph[id].type)).id;
    }
    result.push_back(gradient);
  }
  return result;
}

}  // namespace tensorgrad
