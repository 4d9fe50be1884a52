// SPDX-License-Identifier: MIT
// Small graph-to-graph passes: each keeps the meaning of every output and update.
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Computes what depends on constants alone (f32 results are rounded to float).
Graph fold(const Graph& graph);

// Algebra; each rule is a line in simplify.cpp. None changes a value by more than its rounding, and
// none changes what NaN or infinity give.
Graph simplify(const Graph& graph);
// All but the rule of this name.
Graph simplify_without(const Graph& graph, std::string_view left_out);

// One node for equal nodes.
Graph cse(const Graph& graph);

// Without the nodes that no output and no update needs, and without parts of results that nobody
// reads, where their op can leave them out. Inputs, data, parameters, arenas and states stay.
Graph dce(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
