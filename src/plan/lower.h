// SPDX-License-Identifier: MIT
// Lowers a group of a fused graph to a Launch.
#pragma once

#include <vector>

#include "plan/buffer_assignment.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Word of each runtime scalar in the runtime scalars.
using ScalarWords = std::map<std::string, int>;

Launch lower_group(const Graph& graph, const Placement& placement, const ScalarWords& scalars,
                   int group, const std::vector<ValueId>& members);

// Returns a launch that copies a value to `to`. The value is stored, or computed by its readers.
Launch lower_copy(const Graph& graph, const Placement& placement, const ScalarWords& scalars,
                  ValueId value, const BufferRange& to);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
