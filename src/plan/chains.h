// SPDX-License-Identifier: MIT
// Which small groups follow each other block of rows by block of rows, so that a GPU may run them
// as one kernel (Launch::chained): the layers of a small network, forward and backward.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "ir/graph.h"
#include "plan/stages.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct Chain {
  std::vector<int> groups;  // in the order in which they run
  std::int64_t blocks = 0;  // Launch::blocks
};

// `members` has the nodes of each group, `work` what it waits for and takes. Every group is in one
// chain; most are alone in theirs, without blocks. Groups of `barred` are, as others read what they
// overwrite. Chains do not wait for each other in a circle if groups do not, are in the order of
// their first groups, and their kernels bind at most `max_bindings` buffers.
std::vector<Chain> find_chains(const Graph& graph, const std::vector<std::vector<ValueId>>& members,
                               const std::vector<GroupWork>& work, const std::set<int>& barred,
                               int max_bindings);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
