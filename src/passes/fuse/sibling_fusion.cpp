// SPDX-License-Identifier: MIT
#include "passes/fuse/sibling_fusion.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/visits.h"
#include "ir/sources.h"
#include "ops/registry.h"
#include "passes/fuse/partition.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

bool same_order(const IndexMap& a, const IndexMap& b) {
  return std::equal(
      a.views.begin(), a.views.end(), b.views.begin(), b.views.end(),
      [](const View& one, const View& other) { return one.simplified() == other.simplified(); });
}

class Siblings {
 public:
  Siblings(const Graph& graph, const FuseOptions& options, Partition& parts)
      : graph_(graph), options_(options), parts_(parts) {}

  void run() {
    for (int g = 0; g < parts_.size(); ++g) {
      std::set<int> others = neighbours(g, g);
      while (!others.empty()) {
        const int h = *others.begin();
        others.erase(others.begin());
        visit();
        if (!alike(g, h) || !share(g, h) || !may_be_one(g, h)) continue;
        parts_.merge(g, h);
        others.merge(neighbours(g, h));
      }
    }
  }

 private:
  [[nodiscard]] bool reduces(int g) const {
    const GroupKind kind = parts_.group(g).kind;
    return kind == GroupKind::kRow || kind == GroupKind::kColumn;
  }

  // Returns the groups after `after` that read what g reads from memory, or another result of the
  // group that computes it.
  [[nodiscard]] std::set<int> neighbours(int g, int after) const {
    std::set<int> found;
    if (!reduces(g) || parts_.group(g).members.empty()) return found;
    std::set<ValueId> values;
    for (const Source& source : large_sources(g)) {
      const int maker = parts_.group_of(source.value);
      values.insert(source.value);
      if (maker < 0) continue;
      values.insert(parts_.group(maker).members.begin(), parts_.group(maker).members.end());
    }
    for (const ValueId value : values) {
      for (const ValueId reader : parts_.readers(value)) {
        const int h = parts_.group_of(reader);
        if (h > after && reduces(h)) found.insert(h);
      }
    }
    return found;
  }

  // Returns the first reduction among a group's members, or null.
  [[nodiscard]] const Node* reduction(int g) const {
    for (const ValueId id : parts_.group(g).members) {
      if (graph_[id].op->kind == OpKind::kReduce) return &graph_[id];
    }
    return nullptr;
  }

  // True if both reduce rows, or columns, of the same size and in the same order.
  [[nodiscard]] bool alike(int g, int h) const {
    const Group &a = parts_.group(g), &b = parts_.group(h);
    const bool rows = a.kind == GroupKind::kRow, columns = a.kind == GroupKind::kColumn;
    if (a.kind != b.kind || !(rows || columns) || a.closed || b.closed) return false;
    if (a.rows != b.rows || a.cols != b.cols || a.rows < kFewRows) return false;
    if (a.rows * a.cols < options_.cached_elements) return false;
    const Node *one = reduction(g), *other = reduction(h);
    if (one == nullptr || other == nullptr) return false;
    const View order = reduce_shape(graph_, *one).order;
    return rows || order.simplified() == reduce_shape(graph_, *other).order.simplified();
  }

  // Returns the stored values that a group reads, if they are at least as large as its domain.
  [[nodiscard]] std::vector<Source> large_sources(int g) const {
    std::vector<Source> found;
    visit(static_cast<std::int64_t>(parts_.group(g).members.size()));
    for (const ValueId member : parts_.group(g).members) {
      for (const Source& source : parts_.sources_of(member)) {
        const std::int64_t size = numel(graph_[source.value].type.shape);
        if (parts_.group_of(source.value) != g && parts_.reads_memory(source.value) &&
            size >= parts_.group(g).rows * parts_.group(g).cols)
          found.push_back(source);
      }
    }
    return found;
  }
  // True if both read the same value, or results of the same group, in the same order.
  [[nodiscard]] bool share(int g, int h) const {
    const std::vector<Source> a = large_sources(g), b = large_sources(h);
    return std::any_of(a.begin(), a.end(), [&](const Source& one) {
      return std::any_of(b.begin(), b.end(), [&](const Source& other) {
        const int maker = parts_.group_of(one.value);
        const bool together = maker >= 0 && maker == parts_.group_of(other.value);
        return (one.value == other.value || together) && same_order(one.map, other.map);
      });
    });
  }

  // True if all values that `reader` reads from `made` can stay in registers.
  [[nodiscard]] bool reads_in_place(int reader, int made) const {
    const std::vector<ValueId>& members = parts_.group(reader).members;
    return std::all_of(members.begin(), members.end(), [&](ValueId id) {
      const std::vector<Source>& sources = parts_.sources_of(id);
      const OpKind kind = graph_[id].op->kind;
      const bool reduces = kind == OpKind::kReduce;
      const bool moves = kind == OpKind::kConcat || kind == OpKind::kGather;
      return std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
        if (parts_.group_of(source.value) != made) return true;
        return !moves && parts_.group(made).kind == GroupKind::kRow &&
               parts_.readable(source, parts_.group(made), parts_.row_level(id) && !reduces);
      });
    });
  }

  [[nodiscard]] bool may_be_one(int g, int h) const {
    if (parts_.depends_through_third(g, h) || parts_.depends_through_third(h, g)) return false;
    if (!reads_in_place(g, h) || !reads_in_place(h, g)) return false;
    return parts_.bindings_together(g, h) <= options_.max_bindings;
  }

  const Graph& graph_;
  const FuseOptions& options_;
  Partition& parts_;
};

}  // namespace

void fuse_siblings(const Graph& graph, const FuseOptions& options, Partition& parts) {
  Siblings(graph, options, parts).run();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
