// SPDX-License-Identifier: MIT
// Shrinks a failing graph while it still fails.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace tensorgrad::testing {

// Requires `fails(graph)`. Drops results, replaces nodes by an operand or by an input, and reduces
// sizes. `fails` is only called on valid graphs.
Graph shrink(Graph graph, const std::function<bool(const Graph&)>& fails);

}  // namespace tensorgrad::testing
