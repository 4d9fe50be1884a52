// SPDX-License-Identifier: MIT
#include "passes/fuse/in_place_updates.h"

#include <set>

#include "ir/sources.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

// Returns the operands of the same size that are read elementwise, in order.
std::vector<ValueId> read_in_order(const Graph& graph, ValueId id) {
  std::vector<ValueId> found;
  for (const ValueId input : graph[id].inputs) {
    const Source source = through_views(graph, input);
    const std::int64_t elements = numel(graph[input].type.shape);
    if (source.map.is_identity() && numel(graph[source.value].type.shape) == elements)
      found.push_back(source.value);
  }
  return found;
}

// Marks the values that a reduction reads, directly or through pointwise nodes.
std::vector<bool> summed_up(const Graph& graph) {
  std::vector<bool> summed(graph.nodes.size(), false);
  for (ValueId id = graph.size(); id-- > 0;) {
    const OpKind kind = graph[id].op->kind;
    if (kind != OpKind::kReduce && !(kind == OpKind::kPointwise && summed[at(id)])) continue;
    for (const ValueId from : read_in_order(graph, id)) summed[at(from)] = true;
  }
  return summed;
}

}  // namespace

std::vector<bool> in_place_updates(const Graph& graph) {
  const std::vector<bool> summed = summed_up(graph);
  std::vector<bool> found(graph.nodes.size(), false);
  for (const GraphUpdate& update : graph.updates) {
    std::set<ValueId> above;
    std::vector<ValueId> stack{through_views(graph, update.value).value};
    while (!stack.empty()) {
      const ValueId id = stack.back();
      stack.pop_back();
      const bool passes = graph[id].op->kind == OpKind::kPointwise && !summed[at(id)];
      if ((!passes && id != update.leaf) || !above.insert(id).second) continue;
      for (const ValueId from : read_in_order(graph, id)) stack.push_back(from);
    }
    if (above.erase(update.leaf) == 0) continue;
    for (const ValueId id : above) found[at(id)] = true;
  }
  return found;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
