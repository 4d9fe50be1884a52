// SPDX-License-Identifier: MIT
// Sums that go along with a product.
#pragma once

#include "ir/graph.h"
#include "passes/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Partition;

// The column sum of a contraction's second operand rides in the contraction: db with dW.
void merge_column_sums(const Graph& graph, const FuseOptions& options, Partition& parts);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
