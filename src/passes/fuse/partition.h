// SPDX-License-Identifier: MIT
// The groups of a graph's nodes during fusion: membership, dependencies and binding counts. The
// fusion rules are in fuse.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/sources.h"
#include "passes/fuse/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

enum class GroupKind {
  kMap,
  kRow,
  kColumn,
  kContraction,
  kScatter,
  kIndexUpdate,  // over the elements of the update
  kScan,
  kSort,
  kOpaque
};

struct Group {
  GroupKind kind = GroupKind::kMap;
  std::int64_t elements = 1;        // size of the domain (kColumn: rows)
  std::int64_t rows = 1, cols = 1;  // kRow, kColumn
  std::vector<ValueId> members;     // in order; empty if merged into another group
  bool closed = false;              // no other node may join
};

class Partition {
 public:
  Partition(const Graph& graph, const FuseOptions& options);

  [[nodiscard]] int size() const { return static_cast<int>(groups_.size()); }
  [[nodiscard]] Group& group(int g) { return groups_[static_cast<size_t>(g)]; }
  [[nodiscard]] const Group& group(int g) const { return groups_[static_cast<size_t>(g)]; }

  // Returns the group that computes a value, or -1.
  [[nodiscard]] int group_of(ValueId id) const { return at(id).group; }
  // True if the value has one element per row of its group.
  [[nodiscard]] bool row_level(ValueId id) const { return at(id).row_level; }
  // True if each reader recomputes the value. It then has no group.
  [[nodiscard]] bool inlined(ValueId id) const { return at(id).inlined; }
  // True if the value must be stored in memory: outputs, updates, inputs of a pack, gathered data.
  [[nodiscard]] bool placed(ValueId id) const { return at(id).placed; }
  [[nodiscard]] bool reads_memory(ValueId id) const;

  // Opens a group with one node and returns its number.
  int open(ValueId id, GroupKind kind, std::int64_t elements);
  void join(ValueId id, int g, bool row_level);
  // Moves the members of h to g.
  void merge(int g, int h);
  // Moves a node that is the only member of its group to g.
  void move(ValueId id, int g);
  void set_inlined(ValueId id, bool inlined);
  // Inlines all members of g into their readers and returns them; restore() undoes it.
  std::vector<ValueId> dissolve(int g);
  void restore(int g, const std::vector<ValueId>& members);
  // Inlines one of several members of a group; raise() undoes it.
  void sink(ValueId id);
  void raise(ValueId id, int g);

  // Returns the values that a node reads, looking through views and inlined nodes.
  [[nodiscard]] const std::vector<Source>& sources_of(ValueId id) const;
  // Returns the nodes that read a value, looking through views and inlined nodes.
  [[nodiscard]] const std::vector<ValueId>& readers(ValueId id) const;
  // Returns the groups that compute operands of a node, latest first.
  [[nodiscard]] std::vector<int> candidates(const std::vector<Source>& sources) const;

  // True if group g depends on group `on`, directly or indirectly.
  [[nodiscard]] bool depends(int g, int on) const;
  // True if g depends on `on` through a third group.
  [[nodiscard]] bool depends_through_third(int g, int on) const;
  // True if one of the sources outside g depends on g.
  [[nodiscard]] bool leads_back(const std::vector<Source>& sources, int g) const;

  // True if a member of group `in`, at the given level, can read `source`, another member, without
  // storing it in memory.
  [[nodiscard]] bool readable(const Source& source, const Group& in, bool row_level_reader) const;

  // Returns the number of storage buffers that g would bind if `id` joined it (kNoValue: as it is).
  // Assumes that readers after `id` will join, too.
  [[nodiscard]] int bindings_with(int g, ValueId id) const;
  // Like bindings_with(), for g with the given members. `extra` is the last of them.
  [[nodiscard]] int count_bindings(const std::vector<ValueId>& members, int g, ValueId extra) const;

  // Like bindings_with(), for two groups merged into one.
  [[nodiscard]] int bindings_together(int g, int h) const;

  // Returns the graph with group numbers such that each group comes after those it reads. Ties are
  // broken by the last member.
  [[nodiscard]] Graph numbered() const;

 private:
  struct NodeState {
    int group = -1;
    bool row_level = false, inlined = false, placed = false;
  };

  [[nodiscard]] NodeState& at(ValueId id) { return places_[static_cast<size_t>(id)]; }
  [[nodiscard]] const NodeState& at(ValueId id) const { return places_[static_cast<size_t>(id)]; }
  // True if sources are looked up through this node: a view, or inlined.
  [[nodiscard]] bool passes(ValueId id) const {
    return graph_[id].op->kind == OpKind::kView || inlined(id);
  }
  void mark_placed();
  // Invalidates the sources and readers that were cached through a node, because its `inlined` flag
  // has changed.
  void forget_paths(ValueId id);
  void forget_bindings(int g);
  [[nodiscard]] std::vector<Source> collect_sources(ValueId id) const;
  [[nodiscard]] int level(int g) const { return levels_[static_cast<size_t>(g)]; }
  void remember_need(int g, int on) const;
  void add_dependency(int g, int on);
  void add_dependencies(int g, ValueId member);
  // Returns the groups that compute a value: its own, or those of the inputs of a pack.
  [[nodiscard]] std::set<int> groups_below(ValueId id) const;
  // Returns the groups that each group reads from.
  [[nodiscard]] std::vector<std::set<int>> needs() const;
  // Identifies the buffer that a value is read from. Values that share a binding have equal keys.
  [[nodiscard]] int buffer_key(ValueId id) const;
  [[nodiscard]] int arena_key(const std::string& name) const;
  // The state of bindings_with() for a group, so that a joining node does not cost a visit of all
  // members.
  struct Bound {
    std::size_t counted = 0;
    std::set<int> keys;           // of buffers read from outside the group
    std::vector<ValueId> stored;  // members that are placed or read outside the group
    std::set<std::pair<ValueId, ValueId>> waiting;  // (next reader, member) of the others
    ValueId settled_before = 0;                     // readers before this node are accounted for
  };
  [[nodiscard]] Bound& bound(int g, ValueId id) const;
  void wait_for_reader(Bound& bound, ValueId member, ValueId after) const;
  [[nodiscard]] bool stored_outside(ValueId member, std::span<const int> groups,
                                    ValueId extra) const;
  [[nodiscard]] int count_bindings(const std::vector<ValueId>& members, std::span<const int> groups,
                                   ValueId extra) const;

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<NodeState> places_;  // of each node
  std::vector<Group> groups_;
  // Direct dependencies in both directions. The level of a group is above those of all groups that
  // it depends on.
  std::vector<std::set<int>> needs_;
  std::vector<std::vector<int>> feeds_;
  std::vector<int> levels_;
  std::map<ValueId, ValueId> updated_;  // value -> the leaf that it updates
  std::map<std::string, int> arenas_;   // name -> number
  std::vector<std::vector<ValueId>> users_;
  mutable std::vector<std::optional<std::vector<ValueId>>> readers_;
  mutable std::vector<std::optional<std::vector<Source>>> sources_;
  mutable std::vector<std::optional<Bound>> bounds_;  // of each group
  mutable bool any_readers_ = false;
  mutable std::vector<std::vector<int>> known_needs_;  // cached indirect dependencies
  mutable std::vector<int> seen_, seen_above_;  // the last search at each group, by direction
  mutable int searches_ = 0;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
