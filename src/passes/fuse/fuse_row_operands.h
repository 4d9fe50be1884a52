// SPDX-License-Identifier: MIT
// Fusion of rows with the product of few rows that reads them.
#pragma once

#include "ir/graph.h"
#include "passes/fuse/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Partition;

// Moves a map or row group that only computes the first operand of a product with at most
// kMaxOperandRows rows into the launch of that product: a norm or an activation of a model that
// generates one token. Each workgroup of the product then computes all rows, but a launch is saved.
void fuse_row_operands(const Graph& graph, const FuseOptions& options, Partition& parts);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
