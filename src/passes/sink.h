// SPDX-License-Identifier: MIT
// What is cheaper to compute again than to keep.
#pragma once

#include "ir/graph.h"
#include "passes/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Partition;

// A sum, difference, product or negation.
bool is_cheap(const OpDef* op);
// So many of them, one on the other, may be computed again for an element.
inline constexpr int kMostCheapOperations = 8;

// A sum, difference or product that a launch would store for others only moves there, where its
// operands lie in memory anyway: each reader computes it. It moves if that saves traffic, in bytes:
// what is not stored and read, against the operands that its readers do not read already. A store
// counts twice, since it reads what it writes over. (In the backward pass of a layer norm the
// product that makes dy stores dy alone, not dy's products with the weight and the normalised x.)
void sink_cheap_values(const Graph& graph, const FuseOptions& options, Partition& parts);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
