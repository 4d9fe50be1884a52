// SPDX-License-Identifier: MIT
// Fusion of sibling reductions.
#pragma once

#include "ir/graph.h"
#include "passes/fuse/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Partition;

// Merges launches that reduce the same rows, or the same columns, and read the same values, unless
// one depends on the other through a third. The values are then read only once. Examples are the
// two sums over each row in the gradient of a layer norm, and the sums over each column for its
// weight and bias. Values that fit in a cache are excluded, because concurrent launches are faster
// then.
void fuse_siblings(const Graph& graph, const FuseOptions& options, Partition& parts);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
