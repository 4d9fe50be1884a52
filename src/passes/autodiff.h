// SPDX-License-Identifier: MIT
// Reverse-mode differentiation, graph to graph.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Appends the gradient of `loss` with respect to each value of `wrt` and returns the ids of the
// gradients. Each has the type of its value; if the loss does not depend on the value, it is all
// zeros. If `scale` (an f32 scalar of the graph) is given, differentiates scale * loss. Throws
// ShapeError or DtypeError with the location of the loss if that is not an f32 scalar.
//
// A gradient node has the location of the forward node it comes from, and that node's origin with
// the suffix ".grad".
std::vector<ValueId> autodiff(Graph& graph, ValueId loss, std::span<const ValueId> wrt,
                              ValueId scale = kNoValue);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
