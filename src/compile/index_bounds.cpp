// SPDX-License-Identifier: MIT
#include "compile/index_bounds.h"

#include "ops/registry.h"

namespace tensorgrad {
namespace {

void narrow_bound(const Graph& graph, ValueId id, const IndexBound& bound,
                  std::map<std::string, IndexBound>& bounds) {
  const Node& node = graph[id];
  if (node.op == &ops::input || node.op == &ops::data) {
    const auto [at, fresh] = bounds.try_emplace(node.attrs.text("name"), bound);
    if (!fresh && bound.size < at->second.size) at->second = bound;
  } else if (node.op->kind == OpKind::kView || node.op->kind == OpKind::kGather) {
    narrow_bound(graph, node.inputs[0], bound, bounds);
  } else if (node.op->kind == OpKind::kConcat) {
    for (const ValueId input : node.inputs) narrow_bound(graph, input, bound, bounds);
  }
}

}  // namespace

std::map<std::string, IndexBound> index_bounds(const Graph& graph) {
  std::map<std::string, IndexBound> bounds;
  for (const Node& node : graph.nodes) {
    const bool gather = node.op->kind == OpKind::kGather;
    if (!gather && node.op->kind != OpKind::kScatter) continue;
    const auto axis = static_cast<size_t>(node.attrs.integer("axis"));
    const Shape& shape = gather ? graph[node.inputs[0]].type.shape : node.type.shape;
    const std::string op = node.origin.empty() ? node.op->name : node.origin;
    narrow_bound(graph, node.inputs[1], {shape[axis], node.site, op}, bounds);
  }
  return bounds;
}

}  // namespace tensorgrad
