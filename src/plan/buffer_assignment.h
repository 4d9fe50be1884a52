// SPDX-License-Identifier: MIT
// Buffer assignment: arenas and states have buffers of their own. All other values are assigned to
// slots, which values share if their lifetimes do not overlap.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A contiguous range of a buffer, from element `offset`. All elements of a buffer have the same
// size.
struct BufferRange {
  int buffer = -1;
  std::int64_t offset = 0;
};

struct Placement {
  std::vector<BufferDecl> buffers;
  std::map<ValueId, BufferRange> places;      // leaves with storage, and all stored values
  std::vector<std::vector<ValueId>> members;  // of each group, in order
  std::vector<int> order;                     // groups in execution order
  std::set<int> concurrent, fused_sequence;   // joined to the previous group, and how
  std::map<int, std::int64_t> blocks;         // of groups in fused sequences
  std::vector<std::pair<ValueId, BufferRange>>
      copies;  // values to copy into leaves, after all launches
  // What to copy, and where to, before the launch of a group: the operand of an index_update that
  // is not in place.
  std::map<int, std::pair<ValueId, BufferRange>> copied;
  std::vector<HostStep> host_steps;  // `before` counts groups in `order`
  std::vector<Port> inputs, outputs;
  std::set<ValueId> ringed;  // values of outputs that have a ring
  bool stores_f16 = true;    // as in the options

  [[nodiscard]] DType stored(DType dtype) const { return dtype_in_memory(dtype, stores_f16); }
};

// A launch of a program: a group, or the copy of a value.
struct PlannedLaunch {
  int group = -1;  // -1: a copy
  ValueId copied = kNoValue;
  BufferRange to;  // of a copy
};

Placement place(const Graph& graph, const PlanOptions& options);
// Returns all launches in execution order.
std::vector<PlannedLaunch> planned_launches(const Placement& placement);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
