// SPDX-License-Identifier: MIT
#include "passes/siblings.h"

#include <algorithm>
#include <vector>

#include "ir/sources.h"
#include "ops/registry.h"
#include "passes/partition.h"

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
      for (int h = g + 1; h < parts_.size(); ++h) {
        if (alike(g, h) && share(g, h) && may_be_one(g, h)) parts_.merge(g, h);
      }
    }
  }

 private:
  // The first reduction among a group's members.
  [[nodiscard]] const Node* reduction(int g) const {
    for (const ValueId id : parts_.group(g).members) {
      if (graph_[id].op->kind == OpKind::kReduce) return &graph_[id];
    }
    return nullptr;
  }

  // Do both reduce rows, or columns, of as many elements, and in the same order?
  [[nodiscard]] bool alike(int g, int h) const {
    const Group &a = parts_.group(g), &b = parts_.group(h);
    const bool rows = a.kind == GroupKind::kRow, columns = a.kind == GroupKind::kColumn;
    if (a.kind != b.kind || !(rows || columns) || a.alone || b.alone) return false;
    if (a.rows != b.rows || a.cols != b.cols || a.rows < kFewRows) return false;
    if (a.rows * a.cols < options_.cached_elements) return false;
    const Node *one = reduction(g), *other = reduction(h);
    if (one == nullptr || other == nullptr) return false;
    const View order = reduce_shape(graph_, *one).order;
    return rows || order.simplified() == reduce_shape(graph_, *other).order.simplified();
  }

  // What a group reads from memory for all of its elements.
  [[nodiscard]] std::vector<Source> large_sources(int g) const {
    std::vector<Source> found;
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
  // Do both read the same, or what one launch makes?
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

  // Does `reader` need what `made` makes by way of a third group?
  [[nodiscard]] bool by_way_of_third(int reader, int made) const {
    for (int k = 0; k < parts_.size(); ++k) {
      if (k != reader && k != made && parts_.depends(reader, k) && parts_.depends(k, made))
        return true;
    }
    return false;
  }
  // May what `reader` takes from `made` stay in registers?
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
    if (by_way_of_third(g, h) || by_way_of_third(h, g)) return false;
    if (!reads_in_place(g, h) || !reads_in_place(h, g)) return false;
    return parts_.bindings_together(g, h) <= options_.max_bindings;
  }

  const Graph& graph_;
  const FuseOptions& options_;
  Partition& parts_;
};

}  // namespace

void merge_siblings(const Graph& graph, const FuseOptions& options, Partition& parts) {
  Siblings(graph, options, parts).run();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
