// SPDX-License-Identifier: MIT
#include "compile/debug/memory_map.h"

#include <set>
#include <vector>

#include "base/check.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr int kAnyGroup = -2;  // no value is in it

// Finds what a group reads from memory.
class Readers {
 public:
  Readers(const Graph& graph, const MemoryMap& map, int group)
      : graph_(graph), map_(map), group_(group) {}

  // Adds the stored values that this value is computed from, or the value itself if it is stored.
  void need(ValueId value) {
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!seen_.insert(id).second) continue;
      if (map_.places.contains(id) && graph_[id].group != group_) {
        reads.push_back(id);
      } else {
        const std::vector<ValueId>& inputs = graph_[id].inputs;
        open.insert(open.end(), inputs.rbegin(), inputs.rend());
      }
    }
  }

  std::vector<ValueId> reads;

 private:
  const Graph& graph_;
  const MemoryMap& map_;
  int group_;
  std::set<ValueId> seen_;
};

}  // namespace

MemoryMap memory_map(const Graph& fused, const PlanOptions& options, const Program& program) {
  Placement placement = place(fused, options);
  MemoryMap map;
  map.stores_f16 = options.stores_f16;
  map.places = std::move(placement.places);
  std::vector<LaunchValues> planned;
  for (const auto& [group, copied, to] : planned_launches(placement)) {
    LaunchValues launch;
    launch.group = group;
    launch.copy_to = to;
    const bool copies = group < 0;
    Readers readers(fused, map, copies ? kAnyGroup : group);
    if (copies) {
      launch.stores.push_back(copied);
      readers.need(copied);
    } else {
      for (const ValueId id : placement.members[static_cast<std::size_t>(group)]) {
        if (map.places.contains(id)) launch.stores.push_back(id);
        readers.need(id);
      }
    }
    launch.reads = std::move(readers.reads);
    planned.push_back(std::move(launch));
  }
  // The parts of a launch need not follow each other (split_exchange()).
  std::map<int, std::size_t> first, last;
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    first.try_emplace(program.launches[i].planned, i);
    last[program.launches[i].planned] = i;
  }
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const int whole = program.launches[i].planned;
    map.launches.push_back(planned.at(static_cast<std::size_t>(whole)));
    LaunchValues& part = map.launches.back();
    part.first_part = first[whole] == i;
    part.last_part = last[whole] == i;
  }
  return map;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
