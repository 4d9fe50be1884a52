// SPDX-License-Identifier: MIT
// Small graph-to-graph passes. Each preserves all outputs and updates.
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Constant folding: evaluates scalars that depend only on constants. Rounds f32 results to float.
Graph fold(const Graph& graph);

// Algebraic simplification with the rules in simplify.cpp. No rule changes a value by more than its
// rounding, nor the results for NaN and infinity.
Graph simplify(const Graph& graph);
// Applies all rules except the one of this name.
Graph simplify_without(const Graph& graph, std::string_view left_out);

// Merges equal nodes.
Graph cse(const Graph& graph);

// Removes nodes that no output or update depends on. Shortens results whose last parts are not
// read, if the op supports it. Keeps inputs, data, parameters, arenas and states.
Graph dce(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
