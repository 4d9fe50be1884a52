// SPDX-License-Identifier: MIT
// Detection of in-place updates.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns, for each node, whether it is an elementwise step from the old to the new value of a leaf
// that no reduction reads. A single launch over the elements can compute all such values of a leaf
// and overwrite the old value.
std::vector<bool> in_place_updates(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
