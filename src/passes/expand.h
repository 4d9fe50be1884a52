// SPDX-License-Identifier: MIT
// Macros to the ops that they stand for.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Writes every macro (conv2d, max_pool ...) with other ops, by its record's `expand`. The new nodes
// carry its site, and its origin (its name where it has none). After differentiation, which has
// rules for the macros themselves; before all else, which knows none. Leaves out unused nodes.
Graph expand(const Graph& graph);
// The same with what has a kernel of its own (attention), for bounds on rounding.
Graph expand_all(const Graph& graph);
// The same with the nodes of this kind alone, of those that can be written with others.
Graph expand_where(const Graph& graph, const std::function<bool(const Node& node)>& which);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
