// SPDX-License-Identifier: MIT
// The groups of a graph's nodes while the fuser makes them: who is in which, who reads whom, what a
// group would bind. It keeps the books; fuse.cpp has the rules.
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
#include "passes/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

enum class GroupKind {
  kMap,
  kRow,
  kColumn,
  kContraction,
  kScatter,
  kScan,
  kSort,
  kAttention,
  kSelectiveScan,
  kCustom
};

struct Group {
  GroupKind kind = GroupKind::kMap;
  std::int64_t elements = 1;        // of the domain (kColumn: rows)
  std::int64_t rows = 1, cols = 1;  // kRow, kColumn
  std::vector<ValueId> members;     // in order; empty: merged away
  bool alone = false;               // takes no other member
};

class Partition {
 public:
  Partition(const Graph& graph, const FuseOptions& options);

  [[nodiscard]] int size() const { return static_cast<int>(groups_.size()); }
  [[nodiscard]] Group& group(int g) { return groups_[static_cast<size_t>(g)]; }
  [[nodiscard]] const Group& group(int g) const { return groups_[static_cast<size_t>(g)]; }

  // The group that makes a value, or -1.
  [[nodiscard]] int group_of(ValueId id) const { return at(id).group; }
  // One for each row of its group, not one for each element.
  [[nodiscard]] bool row_level(ValueId id) const { return at(id).row_level; }
  // Computed anew by each reader, so in no group.
  [[nodiscard]] bool inlined(ValueId id) const { return at(id).inlined; }
  // Must lie in memory for others than launches: outputs, updates, parts of a pack, gathered data.
  [[nodiscard]] bool placed(ValueId id) const { return at(id).placed; }
  [[nodiscard]] bool reads_memory(ValueId id) const;

  // Puts a node into a new group, and gives its number.
  int open(ValueId id, GroupKind kind, std::int64_t elements);
  void join(ValueId id, int g, bool row_level);
  // h's members become g's.
  void merge(int g, int h);
  // A node that is the only member of its group moves over to g.
  void move(ValueId id, int g);
  void set_inlined(ValueId id, bool inlined);
  // g's members are computed by their readers from now on; restore() undoes that.
  std::vector<ValueId> dissolve(int g);
  void restore(int g, const std::vector<ValueId>& members);
  // The same for one of several members of a group; raise() undoes that.
  void sink(ValueId id);
  void raise(ValueId id, int g);

  // The values a node reads, through views and through nodes that are inlined.
  [[nodiscard]] const std::vector<Source>& sources_of(ValueId id) const;
  // The nodes that read a value, seen through the same.
  [[nodiscard]] const std::vector<ValueId>& readers(ValueId id) const;
  // The groups that make the operands of a node, latest first.
  [[nodiscard]] std::vector<int> candidates(const std::vector<Source>& sources) const;

  // Does group g need what group `on` makes, directly or through others?
  [[nodiscard]] bool depends(int g, int on) const;
  // Does g need what `on` makes by way of a third group?
  [[nodiscard]] bool depends_through_third(int g, int on) const;
  // Does one of the sources outside g depend on g?
  [[nodiscard]] bool leads_back(const std::vector<Source>& sources, int g) const;

  // Can a member of such a group, at that level, read this other member without a trip through
  // memory?
  [[nodiscard]] bool readable(const Source& source, const Group& in, bool row_level_reader) const;

  // Storage buffers that g would bind with `id` in it (kNoValue: as it is). Readers that come later
  // are taken to join it.
  [[nodiscard]] int bindings_with(int g, ValueId id) const;
  // The same for g if its members were these, `extra` the last of them.
  [[nodiscard]] int count_bindings(const std::vector<ValueId>& members, int g, ValueId extra) const;

  // The same for two groups as one.
  [[nodiscard]] int bindings_together(int g, int h) const;

  // The graph with its groups numbered so that each comes after what it reads; ties by last member.
  [[nodiscard]] Graph numbered() const;

 private:
  struct Place {
    int group = -1;
    bool row_level = false, inlined = false, placed = false;
  };

  [[nodiscard]] Place& at(ValueId id) { return places_[static_cast<size_t>(id)]; }
  [[nodiscard]] const Place& at(ValueId id) const { return places_[static_cast<size_t>(id)]; }
  // Seen through: a view, or computed by its readers.
  [[nodiscard]] bool passes(ValueId id) const {
    return graph_[id].op->kind == OpKind::kView || inlined(id);
  }
  void mark_placed();
  // Drops what was found through a node, now that it is inlined or no longer is.
  void forget_paths(ValueId id);
  void forget_bindings(int g);
  [[nodiscard]] std::vector<Source> collect_sources(ValueId id) const;
  [[nodiscard]] int level(int g) const { return levels_[static_cast<size_t>(g)]; }
  void remember_need(int g, int on) const;
  void add_dependency(int g, int on);
  void add_dependencies(int g, ValueId member);
  // The groups that make a value: its own, or those of the parts of a pack.
  [[nodiscard]] std::set<int> groups_below(ValueId id) const;
  // The groups that each group reads from.
  [[nodiscard]] std::vector<std::set<int>> needs() const;
  // Where in memory a value is read from: what shares a binding counts once.
  [[nodiscard]] int buffer_key(ValueId id) const;
  [[nodiscard]] int arena_key(const std::string& name) const;
  // What bindings_with() has counted of a group: a node that joins costs no look at all members.
  struct Bound {
    std::size_t counted = 0;
    std::set<int> keys;                             // of what is read from outside
    std::vector<ValueId> stored;                    // members that are placed, or read outside
    std::set<std::pair<ValueId, ValueId>> waiting;  // other members by their next reader
    ValueId settled_before = 0;                     // this node: its earlier readers are known
  };
  [[nodiscard]] Bound& bound(int g, ValueId id) const;
  void wait_for_reader(Bound& bound, ValueId member, ValueId after) const;
  [[nodiscard]] bool stored_outside(ValueId member, std::span<const int> groups,
                                    ValueId extra) const;
  [[nodiscard]] int count_bindings(const std::vector<ValueId>& members, std::span<const int> groups,
                                   ValueId extra) const;

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<Place> places_;  // of each node
  std::vector<Group> groups_;
  // Direct dependencies in both directions. A group's level is above those of all that it needs.
  std::vector<std::set<int>> needs_;
  std::vector<std::vector<int>> feeds_;
  std::vector<int> levels_;
  std::map<ValueId, ValueId> updated_;  // value -> the leaf that it is the new value of
  std::map<std::string, int> arenas_;   // numbers of their names
  std::vector<std::vector<ValueId>> users_;
  mutable std::vector<std::optional<std::vector<ValueId>>> readers_;
  mutable std::vector<std::optional<std::vector<Source>>> sources_;
  mutable std::vector<std::optional<Bound>> bounds_;  // of each group
  mutable bool any_readers_ = false;
  mutable std::vector<std::vector<int>> known_needs_;  // indirect ones that were found
  mutable std::vector<int> seen_, seen_above_;         // the searches that were last at a group
  mutable int searches_ = 0;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
