// SPDX-License-Identifier: MIT
// Decomposition of ops.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Replaces every decomposable op (conv2d, max_pool ...) by its decomposition (OpDef::expand). The
// new nodes keep its location and origin; if it has no origin, its name becomes the origin. Drops
// unused nodes first. Must run after differentiation, which has rules for these ops, and before all
// other passes, which do not support them.
Graph expand(const Graph& graph);
// Decomposes all ops that have a decomposition, including those with kernels of their own
// (attention). Used to bound rounding errors.
Graph decompose_all(const Graph& graph);
// Decomposes the nodes for which `which` returns true, if they have a decomposition.
Graph decompose_where(const Graph& graph, const std::function<bool(const Node& node)>& which);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
