// SPDX-License-Identifier: MIT
// One group of a fused graph as a Launch.
#pragma once

#include <vector>

#include "plan/placement.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Number of each run-time scalar's word in the hyper row.
using HyperWords = std::map<std::string, int>;

Launch lower_group(const Graph& graph, const Placement& placement, const HyperWords& hypers,
                   int group, const std::vector<ValueId>& members);

// A launch that copies a stored value to another place.
Launch lower_copy(const Graph& graph, const Placement& placement, ValueId value, const Place& to);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
