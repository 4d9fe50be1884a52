// SPDX-License-Identifier: MIT
#include "compile/runtime/index_bounds.h"

#include <set>
#include <utility>
#include <vector>

#include "ir/sources.h"
#include "ops/pointwise.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using Bounds = std::map<std::string, std::vector<IndexBound>>;

// Returns the data leaf from which the node selects a batch, or kNoValue.
ValueId drawn_from(const Graph& graph, const Node& node) {
  if (node.op->kind != OpKind::kGather) return kNoValue;
  const ValueId from = through_views(graph, node.inputs[0]).value;
  return graph[from].op == &ops::data ? from : kNoValue;
}

// Adds a bound. Of several bounds for the same elements, only the tightest is kept.
void add(const Node& leaf, const IndexBound& bound, Bounds& bounds) {
  std::vector<IndexBound>& known = bounds[leaf.attrs.text("name")];
  for (IndexBound& each : known) {
    if (each.columns != bound.columns || each.except != bound.except) continue;
    if (bound.size < each.size) each = bound;
    return;
  }
  known.push_back(bound);
}

// Returns the number that all elements of a value equal, if there is one.
std::optional<double> constant_value(const Graph& graph, ValueId id) {
  const Source source = through_views(graph, id);
  const Node& node = graph[source.value];
  if (node.op != &ops::constant || source.map.masked()) return std::nullopt;
  return node.attrs.number("value");
}

// Returns the number in where(x != number, x, y).
std::optional<double> replaced_number(const Graph& graph, const Node& node) {
  if (node.op != &ops::where || graph[node.inputs[0]].op != &ops::ne) return std::nullopt;
  const Node& test = graph[node.inputs[0]];
  if (test.inputs[0] != node.inputs[1]) return std::nullopt;
  return constant_value(graph, test.inputs[1]);
}

// Adds a bound for the elements that a slice reads. Views of the slice are assumed to use all of
// it.
void add_slice(const Graph& graph, ValueId slice, IndexBound bound, Bounds& bounds) {
  const Source source = through_views(graph, slice);
  const ValueId drawn = drawn_from(graph, graph[source.value]);
  const Node& leaf = graph[drawn == kNoValue ? source.value : drawn];
  if (leaf.op != &ops::input && leaf.op != &ops::data) return;
  const std::int64_t count = numel(leaf.type.shape);
  bound.row = drawn == kNoValue ? count : count / leaf.type.shape[0];
  std::set<std::int64_t> columns;
  for (std::int64_t i = 0; i < numel(graph[slice].type.shape); ++i) {
    const std::int64_t at = offset_at(source.map, i);
    if (at >= 0) columns.insert(at % bound.row);
  }
  bound.columns.assign(columns.begin(), columns.end());
  if (!columns.empty()) add(leaf, bound, bounds);
}

void follow(const Graph& graph, ValueId indices, const IndexBound& first, Bounds& bounds) {
  using Except = std::optional<std::int64_t>;
  std::vector<std::pair<ValueId, Except>> open{{indices, first.except}};
  std::set<std::pair<ValueId, Except>> seen;
  IndexBound bound = first;
  while (!open.empty()) {
    const auto [id, except] = open.back();
    open.pop_back();
    if (!seen.insert({id, except}).second) continue;
    bound.except = except;
    const Node& node = graph[id];
    if (node.op == &ops::input || node.op == &ops::data) {
      add(node, bound, bounds);
    } else if (node.op == &ops::slice) {
      add_slice(graph, id, bound, bounds);
    } else if (node.op->kind == OpKind::kView || drawn_from(graph, node) != kNoValue) {
      open.emplace_back(node.inputs[0], except);
    } else if (node.op->kind == OpKind::kConcat) {
      for (std::size_t i = node.inputs.size(); i-- > 0;) open.emplace_back(node.inputs[i], except);
    } else if (const std::optional<double> number = replaced_number(graph, node)) {
      open.emplace_back(node.inputs[2], except);
      open.emplace_back(node.inputs[1], static_cast<std::int64_t>(*number));
    }
  }
}

}  // namespace

std::map<std::string, std::vector<IndexBound>> index_bounds(const Graph& graph) {
  Bounds bounds;
  for (const Node& node : graph.nodes) {
    const bool gather = node.op->kind == OpKind::kGather;
    if (!gather && node.op->kind != OpKind::kScatter) continue;
    const auto axis = static_cast<size_t>(node.attrs.integer("axis"));
    const Shape& shape = gather ? graph[node.inputs[0]].type.shape : node.type.shape;
    const std::string op = node.origin.empty() ? node.op->name : node.origin;
    follow(graph, node.inputs[1], {shape[axis], node.location, op, {}, 0}, bounds);
  }
  return bounds;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
