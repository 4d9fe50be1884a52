// SPDX-License-Identifier: MIT
// Fusion of bias gradients with weight gradients.
#pragma once

#include "ir/graph.h"
#include "passes/fuse/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Partition;

// Moves a sum over k of an operand of a matrix product into the launch of that product, e.g. db
// into the launch of dW.
void fuse_bias_gradient(const Graph& graph, const FuseOptions& options, Partition& parts);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
