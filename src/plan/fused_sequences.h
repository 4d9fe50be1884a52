// SPDX-License-Identifier: MIT
// Finds fused sequences (Launch::fused_sequence): small groups of which each reads only its own
// block of rows of the previous ones, such as the layers of a small network, forward and backward.
// A GPU may run them as one kernel.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "ir/graph.h"
#include "plan/schedule.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct FusedSequence {
  std::vector<int> groups;  // in execution order
  std::int64_t blocks = 0;  // Launch::blocks
};

// Partitions the groups into sequences, one per fused sequence; most sequences are a single group
// without blocks. `members` has the nodes of each group, `work` its dependencies and cost. Groups
// of `barred` are not fused, because they overwrite what others read.
//
// The sequences are sorted by their first groups. If the groups have no dependency cycle, neither
// do the sequences. The kernel of a fused sequence binds at most `max_bindings` buffers.
std::vector<FusedSequence> find_fused_sequences(const Graph& graph,
                                                const std::vector<std::vector<ValueId>>& members,
                                                const std::vector<GroupWork>& work,
                                                const std::set<int>& barred, int max_bindings,
                                                const GpuModel& gpu);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
