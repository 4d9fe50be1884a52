// SPDX-License-Identifier: MIT
#include "support/shrink.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

constexpr int kMaxTries = 3000;

// Removes nodes that no result and no node marked in `keep` depends on.
Graph needed(const Graph& graph, std::vector<bool> keep = {}) {
  keep.resize(graph.nodes.size());
  const auto mark = [&](ValueId id) { keep[static_cast<std::size_t>(id)] = true; };
  for (const GraphOutput& output : graph.outputs) mark(output.value);
  for (const GraphUpdate& update : graph.updates) {
    mark(update.leaf);
    mark(update.value);
  }
  for (ValueId id = graph.size() - 1; id >= 0; --id) {
    if (!keep[static_cast<std::size_t>(id)]) continue;
    for (const ValueId input : graph[id].inputs) mark(input);
  }
  Graph out;
  std::vector<ValueId> now(graph.nodes.size(), kNoValue);
  const auto moved = [&](ValueId id) { return now[static_cast<std::size_t>(id)]; };
  for (ValueId id = 0; id < graph.size(); ++id) {
    if (!keep[static_cast<std::size_t>(id)]) continue;
    Node node = graph[id];
    for (ValueId& input : node.inputs) input = moved(input);
    now[static_cast<std::size_t>(id)] = out.append(std::move(node));
  }
  for (const GraphOutput& output : graph.outputs)
    out.outputs.push_back({output.name, moved(output.value)});
  for (const GraphUpdate& update : graph.updates)
    out.updates.push_back({moved(update.leaf), moved(update.value)});
  return out;
}

// Replaces all uses of `id` by `other`, which must precede it.
Graph replaced(Graph graph, ValueId id, ValueId other) {
  for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), id, other);
  for (GraphOutput& output : graph.outputs)
    output.value = output.value == id ? other : output.value;
  for (GraphUpdate& update : graph.updates)
    update.value = update.value == id ? other : update.value;
  return graph;
}

// Replaces a node by an input. Returns nothing for booleans, because inputs cannot be boolean.
std::optional<Graph> cut(Graph graph, ValueId id, int number) {
  Node& node = graph[id];
  if (node.op->kind == OpKind::kLeaf || node.type.dtype == DType::kBool) return std::nullopt;
  node.inputs.clear();
  node.attrs = {{"name", "cut" + std::to_string(number)},
                {"dtype", static_cast<std::int64_t>(node.type.dtype)},
                {"shape", node.type.shape}};
  node.op = &ops::input;
  return graph;
}

// Replaces every node before `end` by an input.
Graph cut_before(Graph graph, ValueId end, int number) {
  for (ValueId id = 0; id < end; ++id) {
    Node& node = graph[id];
    if (node.op->kind == OpKind::kLeaf || node.type.dtype == DType::kBool) continue;
    node.attrs = {{"name", "cut" + std::to_string(number) + "_" + std::to_string(id)},
                  {"dtype", static_cast<std::int64_t>(node.type.dtype)},
                  {"shape", node.type.shape}};
    node.op = &ops::input;
    node.inputs.clear();
  }
  return graph;
}

// Makes node `id` the only result.
Graph rooted(Graph graph, ValueId id) {
  graph.outputs = {{"y", id}};
  graph.updates.clear();
  return graph;
}

// Returns the graph with every size `from` in an attribute changed to `to`, or nothing if that is
// invalid. Offsets in the parameter arena are kept: it may have gaps.
std::optional<Graph> resized(const Graph& graph, std::int64_t from, std::int64_t to) {
  Graph out;
  try {
    for (const Node& node : graph.nodes) {
      Attrs attrs = node.attrs;
      for (const auto& [key, value] : node.attrs.items()) {
        if (key != "shape" && key != "stop" && key != "size") continue;
        if (const auto* one = std::get_if<std::int64_t>(&value); one && *one == from) {
          attrs.set(key, to);
        } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
          std::vector<std::int64_t> changed = *list;
          std::replace(changed.begin(), changed.end(), from, to);
          attrs.set(key, changed);
        }
      }
      out.add(*node.op, node.inputs, attrs, node.location, node.origin);
    }
    out.outputs = graph.outputs;
    out.updates = graph.updates;
    verify(out);
  } catch (const Error&) {
    return std::nullopt;
  }
  return out;
}

class Shrinker {
 public:
  Shrinker(Graph graph, const std::function<bool(const Graph&)>& fails)
      : graph_(std::move(graph)), fails_(fails) {}

  Graph run() {
    prunes_ = fails_(needed(graph_));
    drop_results();
    halve();
    for (std::size_t before = 0; before != measure(graph_);) {
      before = measure(graph_);
      replace_nodes();
      drop_results();
      if (!prunes_) drop_unused();
      lower_sizes();
    }
    return std::move(graph_);
  }

 private:
  static std::size_t measure(const Graph& graph) {
    std::size_t sum = graph.outputs.size() + graph.updates.size();
    for (const Node& node : graph.nodes)
      sum += 100 + static_cast<std::size_t>(numel(node.type.shape)) + node.inputs.size();
    return sum;
  }

  bool take(std::optional<Graph> smaller) {
    if (!smaller) return false;
    if (prunes_) smaller = needed(*smaller);
    if (measure(*smaller) >= measure(graph_)) return false;
    if (tries_++ > kMaxTries || !fails_(*smaller)) return false;
    graph_ = std::move(*smaller);
    return true;
  }

  template <class Item>
  void drop(std::vector<Item> Graph::* items) {
    for (std::size_t i = (graph_.*items).size(); i-- > 0;) {
      if (graph_.outputs.size() + graph_.updates.size() == 1) return;
      Graph smaller = graph_;
      (smaller.*items).erase((smaller.*items).begin() + static_cast<std::ptrdiff_t>(i));
      take(std::move(smaller));
    }
  }

  // Removes large parts first: those before a node and those after it.
  void halve() {
    for (ValueId part = graph_.size() / 2; part >= 2;) {
      const bool smaller = (part < graph_.size() && take(cut_before(graph_, part, cuts_++))) ||
                           (part < graph_.size() && take(rooted(graph_, graph_.size() - 1 - part)));
      if (!smaller) part /= 2;
    }
  }

  void drop_results() {
    drop(&Graph::updates);
    drop(&Graph::outputs);
  }

  // Needed only if the failure depends on a node that no result needs.
  void drop_unused() {
    for (ValueId id = graph_.size() - 1; id >= 0; --id) {
      std::vector<bool> keep(graph_.nodes.size(), true);
      keep[static_cast<std::size_t>(id)] = false;
      take(needed(graph_, std::move(keep)));
    }
  }

  // From the results upwards: a cut near them removes most.
  void replace_nodes() {
    for (ValueId id = graph_.size() - 1; id >= 0; --id) {
      if (id >= graph_.size()) continue;
      if (take(cut(graph_, id, cuts_++))) continue;
      const std::vector<ValueId> inputs = graph_[id].inputs;
      for (const ValueId input : inputs) {
        if (id >= graph_.size() || graph_[input].type != graph_[id].type) continue;
        if (take(replaced(graph_, id, input))) break;
      }
    }
  }

  void lower_sizes() {
    std::set<std::int64_t> sizes;
    for (const Node& node : graph_.nodes)
      sizes.insert(node.type.shape.begin(), node.type.shape.end());
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      for (const std::int64_t to : {std::int64_t{1}, *size / 2, *size - 1}) {
        if (to > 0 && to < *size && take(resized(graph_, *size, to))) break;
      }
    }
  }

  Graph graph_;
  const std::function<bool(const Graph&)>& fails_;
  int cuts_ = 0, tries_ = 0;
  bool prunes_ = true;  // remove unneeded nodes
};

}  // namespace

Graph shrink(Graph graph, const std::function<bool(const Graph&)>& fails) {
  return Shrinker(std::move(graph), fails).run();
}

}  // namespace tensorgrad::testing
