// SPDX-License-Identifier: MIT
// Recomputes cheap values in their readers instead of storing them.
#pragma once

#include "ir/graph.h"
#include "passes/fuse/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Partition;

// True for add, sub, mul and neg.
bool is_cheap(const OpDef* op);
// Maximum number of nested cheap operations that may be recomputed per element.
inline constexpr int kMaxCheapOperations = 8;

// Moves sums, differences, products and negations that a launch computes only for other launches
// into those readers, if their operands are stored anyway. A value moves if this reduces memory
// traffic in bytes: the store and loads that it saves must exceed the loads of operands that the
// readers do not read already. A store counts twice, since it also reads what it overwrites.
// Example: in the backward pass of a layer norm, the product that computes dy then stores only dy,
// not the products of dy with the weight and the normalized x.
void sink_cheap_values(const Graph& graph, const FuseOptions& options, Partition& parts);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
