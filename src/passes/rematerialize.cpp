// SPDX-License-Identifier: MIT
#include "passes/rematerialize.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/sources.h"
#include "ops/expr.h"
#include "ops/registry.h"
#include "passes/fuse/sink.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// A source smaller than the recomputed value by this factor may be kept longer.
constexpr std::int64_t kSmallRatio = 16;

// A value and the nodes that recompute it, in order, for its readers from `first_late` on.
struct Again {
  ValueId value = kNoValue, first_late = kNoValue;
  std::vector<ValueId> members;
};

class Finder {
 public:
  Finder(const Graph& graph, const RematerializeOptions& options)
      : graph_(graph),
        options_(options),
        readers_(graph.nodes.size()),
        outside_(graph.nodes.size(), false),
        dropped_(outside_),
        made_(graph.nodes.size() + 1, 0) {
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      const bool view = node.op->kind == OpKind::kView;
      for (const ValueId input : node.inputs) {
        if (!view) readers_[index(through_views(graph_, input).value)].push_back(id);
      }
      // Pointwise values may be fused and never stored.
      const bool stored = is_computed(node) && node.op->kind != OpKind::kPointwise;
      made_[index(id) + 1] = made_[index(id)] + (stored ? bytes(id) : 0);
    }
    for (const GraphOutput& output : graph_.outputs) mark_outside(output.value);
    for (const GraphUpdate& update : graph_.updates) mark_outside(update.value);
  }

  std::vector<Again> run() {
    std::vector<Again> found;
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const std::optional<Again> again = consider(id);
      if (!again) continue;
      dropped_[index(id)] = true;
      found.push_back(*again);
    }
    return found;
  }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  [[nodiscard]] std::int64_t bytes(ValueId id) const {
    const Type& type = graph_[id].type;
    return numel(type.shape) * static_cast<std::int64_t>(element_bytes(type.dtype));
  }

  void mark_outside(ValueId id) { outside_[index(through_views(graph_, id).value)] = true; }

  [[nodiscard]] ValueId last_reader(ValueId id) const {
    return readers_[index(id)].empty() ? kNoValue : readers_[index(id)].back();
  }

  [[nodiscard]] std::optional<Again> consider(ValueId id) const {
    const Node& node = graph_[id];
    const bool large = is_cheap(node.op) && bytes(id) >= options_.least_bytes;
    if (!large || outside_[index(id)] || readers_[index(id)].size() < 2) return std::nullopt;
    Again again{id, kNoValue, {}};
    std::int64_t most = -1;
    const std::vector<ValueId>& readers = readers_[index(id)];
    for (std::size_t i = 1; i < readers.size(); ++i) {
      const std::int64_t between = made_[index(readers[i])] - made_[index(readers[i - 1]) + 1];
      if (between <= most) continue;
      most = between;
      again.first_late = readers[i];
    }
    if (most < options_.much_else * bytes(id)) return std::nullopt;
    ValueId large_source = kNoValue;
    if (!collect(id, id, again.members, large_source)) return std::nullopt;
    std::sort(again.members.begin(), again.members.end());
    return again;
  }

  // Adds `at` to `members`, with the operands that must be recomputed for it. Returns false if a
  // large operand would have to be kept longer, or if it is too much work.
  bool collect(ValueId at, ValueId value, std::vector<ValueId>& members,
               ValueId& large_source) const {
    if (std::find(members.begin(), members.end(), at) != members.end()) return true;
    if (static_cast<int>(members.size()) == kMaxCheapOperations) return false;
    members.push_back(at);
    for (const ValueId input : graph_[at].inputs) {
      const ValueId source = through_views(graph_, input).value;
      if (!is_computed(graph_[source]) && graph_[source].op->kind != OpKind::kPack) continue;
      if (kSmallRatio * bytes(source) <= bytes(value) && !dropped_[index(source)]) continue;
      if (source == large_source) continue;
      const bool kept = !dropped_[index(source)] && last_reader(source) >= last_reader(value);
      if (kept && large_source == kNoValue) {
        large_source = source;
      } else if (source != input || !is_cheap(graph_[source].op) ||
                 !collect(source, value, members, large_source)) {
        return false;
      }
    }
    return true;
  }

  const Graph& graph_;
  const RematerializeOptions& options_;
  std::vector<std::vector<ValueId>> readers_;  // of each value, through views
  std::vector<bool> outside_;                  // also read by the host
  std::vector<bool> dropped_;                  // no longer kept
  std::vector<std::int64_t> made_;             // bytes of the results before each node
};

// Inserts the copies into the graph, each before its first reader.
class Rebuilder {
 public:
  Rebuilder(const Graph& graph, const std::vector<Again>& found)
      : graph_(graph), map_(graph.nodes.size(), kNoValue) {
    for (const Again& again : found) {
      due_[again.first_late].push_back(&again);
    }
  }

  Graph run() {
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const auto due = due_.find(id);
      if (due != due_.end()) {
        for (const Again* again : due->second) copy(*again);
      }
      Node node = graph_[id];
      // Views keep reading the original, since they may precede the copy. late() recreates them.
      const bool view = node.op->kind == OpKind::kView;
      for (ValueId& input : node.inputs) input = view ? map_[index(input)] : late(input);
      map_[index(id)] = out_.append(std::move(node));
    }
    for (const GraphOutput& output : graph_.outputs)
      out_.outputs.push_back({output.name, map_[index(output.value)]});
    for (const GraphUpdate& update : graph_.updates)
      out_.updates.push_back({map_[index(update.leaf)], map_[index(update.value)]});
    return std::move(out_);
  }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  void copy(const Again& again) {
    std::map<ValueId, ValueId> made;
    for (const ValueId member : again.members) {
      Node node = graph_[member];
      Builder builder{out_, node.location, node.origin};
      for (ValueId& input : node.inputs) {
        const auto at = made.find(input);
        if (at != made.end()) {
          input = at->second;
        } else if (is_computed(graph_[through_views(graph_, input).value])) {
          input = op::apply(builder, ops::barrier, {Expr{&builder, map_[index(input)]}}).id;
        } else {
          input = map_[index(input)];
        }
      }
      made[member] = out_.append(std::move(node));
    }
    copies_[again.value] = made[again.value];
  }

  // Returns what a reader from here on reads instead of `id`: its copy or, if it is a view of a
  // value with a copy, that view of the copy. Returns the original if there is no copy.
  ValueId late(ValueId id) {
    std::vector<ValueId> views;  // views that have no copy, from the reader on
    while (!copies_.contains(id)) {
      if (graph_[id].op->kind != OpKind::kView) {
        return map_[index(views.empty() ? id : views.front())];
      }
      views.push_back(id);
      id = graph_[id].inputs[0];
    }
    ValueId made = copies_.at(id);
    for (; !views.empty(); views.pop_back()) {
      Node node = graph_[views.back()];
      node.inputs[0] = made;
      made = copies_[views.back()] = out_.append(std::move(node));
    }
    return made;
  }

  const Graph& graph_;
  Graph out_;
  std::vector<ValueId> map_;
  std::map<ValueId, std::vector<const Again*>> due_;  // by first late reader
  std::map<ValueId, ValueId> copies_;                 // of values and of their views
};

}  // namespace

Graph rematerialize(const Graph& graph, const RematerializeOptions& options) {
  const std::vector<Again> found = Finder(graph, options).run();
  return found.empty() ? graph : Rebuilder(graph, found).run();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
