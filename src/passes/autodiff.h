// SPDX-License-Identifier: MIT
// Reverse-mode differentiation, graph to graph.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Appends the gradient of `loss` (an f32 scalar, else a ShapeError or DtypeError with its line)
// with respect to each of `wrt` (any values of the graph) and returns their ids: values of the same
// type as `wrt`. A value that the loss does not depend on has a gradient of zeros. Each gradient's
// node carries the site of the forward node it comes from, and its origin with ".grad". With
// `scale` (an f32 scalar of the graph) they are those of scale * loss.
std::vector<ValueId> autodiff(Graph& graph, ValueId loss, std::span<const ValueId> wrt,
                              ValueId scale = kNoValue);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
