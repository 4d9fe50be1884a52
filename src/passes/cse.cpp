// SPDX-License-Identifier: MIT
// Common subexpression elimination and dead code elimination.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "ops/registry.h"
#include "passes/rewrite_log.h"
#include "passes/simplify.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::string attrs_key(const Attrs& attrs) {
  std::string key;
  for (const auto& [name, value] : attrs.items()) {
    key += name + '=';
    if (const auto* i = std::get_if<std::int64_t>(&value)) key += std::to_string(*i);
    if (const auto* d = std::get_if<double>(&value))
      key.append(reinterpret_cast<const char*>(d), sizeof *d);
    if (const auto* s = std::get_if<std::string>(&value)) key += *s;
    if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value)) key += to_string(*l);
    key += ';';
  }
  return key;
}

bool has_host_face(const Node& node) {
  return node.op == &ops::parameter || node.op == &ops::arena || node.op == &ops::input ||
         node.op == &ops::data || node.op == &ops::state;
}

// Returns the number of leading elements of each value that are read. Only slices of
// one-dimensional values reduce it; any other reader counts as reading all elements.
std::vector<std::int64_t> elements_needed(const Graph& graph, const std::vector<bool>& live) {
  std::vector<std::int64_t> needed(graph.nodes.size(), 0);
  const auto all = [&](ValueId id) {
    needed[static_cast<size_t>(id)] = numel(graph[id].type.shape);
  };
  for (const GraphOutput& output : graph.outputs) all(output.value);
  for (const GraphUpdate& update : graph.updates) all(update.value);
  for (ValueId id = 0; id < graph.size(); ++id) {
    if (!live[static_cast<size_t>(id)]) continue;
    const Node& node = graph[id];
    for (const ValueId input : node.inputs) {
      std::int64_t& of_input = needed[static_cast<size_t>(input)];
      if (node.op == &ops::slice && graph[input].type.shape.size() == 1) {
        of_input = std::max(of_input, node.attrs.list("stop")[0]);
      } else {
        all(input);
      }
    }
  }
  return needed;
}

void shorten(const Graph& graph, Node& node, std::int64_t needed) {
  std::vector<Type> types;
  for (const ValueId input : node.inputs) types.push_back(graph[input].type);
  const std::optional<Attrs> fewer = node.op->shorten(types, node.attrs, needed);
  if (!fewer) return;
  node.attrs = *fewer;
  node.type = node.op->infer(types, node.attrs);
}

}  // namespace

Graph cse(const Graph& graph) {
  using Key = std::tuple<const OpDef*, std::vector<ValueId>, std::string, std::string>;
  std::map<Key, ValueId> seen;
  const RewriteLog log("cse");
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    const auto [at, fresh] = seen.try_emplace(
        {node.op, node.inputs, to_string(node.type), attrs_key(node.attrs)}, kNoValue);
    if (fresh) {
      at->second = out.append(node);
    } else {
      log.replaced("equal", out, node, at->second);
    }
    return at->second;
  });
}

Graph dce(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  for (const GraphOutput& output : graph.outputs) live[static_cast<size_t>(output.value)] = true;
  for (const GraphUpdate& update : graph.updates) {
    live[static_cast<size_t>(update.leaf)] = live[static_cast<size_t>(update.value)] = true;
  }
  for (ValueId id = graph.size(); id-- > 0;) {
    if (has_host_face(graph[id])) live[static_cast<size_t>(id)] = true;
    if (!live[static_cast<size_t>(id)]) continue;
    for (const ValueId input : graph[id].inputs) live[static_cast<size_t>(input)] = true;
  }
  const std::vector<std::int64_t> needed = elements_needed(graph, live);
  const RewriteLog log("dce");
  Graph out;
  std::vector<ValueId> map(graph.nodes.size(), kNoValue);
  for (ValueId id = 0; id < graph.size(); ++id) {
    if (!live[static_cast<size_t>(id)]) {
      log.dropped("unused", graph, id);
      continue;
    }
    Node node = graph[id];
    for (ValueId& input : node.inputs) input = map[static_cast<size_t>(input)];
    if (node.op->shorten != nullptr) shorten(out, node, needed[static_cast<size_t>(id)]);
    map[static_cast<size_t>(id)] = out.append(std::move(node));
  }
  for (const GraphOutput& output : graph.outputs) {
    out.outputs.push_back({output.name, map[static_cast<size_t>(output.value)]});
  }
  for (const GraphUpdate& update : graph.updates) {
    out.updates.push_back(
        {map[static_cast<size_t>(update.leaf)], map[static_cast<size_t>(update.value)]});
  }
  return out;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
