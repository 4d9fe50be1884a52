// SPDX-License-Identifier: MIT
// Before fusing: what must lie in memory does.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Adds copies (detach nodes) for values that must lie in memory but are
// only a view, a leaf or an expression: outputs, updates, the data operand of a
// gather, and parts of a pack that are not a launch's own. After it, each
// output, update and part is a value of its own, in order and whole. Products read memory through
// one window, where a copy that is not larger than the operand makes that so.
Graph place_in_memory(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
