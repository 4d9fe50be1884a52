// SPDX-License-Identifier: MIT
// Which values are new values of leaves in the making.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// For each node: does it make the new value of a leaf out of the old one, element by element, and
// is it summed up nowhere on the way? Such values can be made in one launch over the elements,
// which writes each new one over the old one.
std::vector<bool> updating(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
