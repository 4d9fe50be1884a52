// SPDX-License-Identifier: MIT
// Reductions that go over the same elements.
#pragma once

#include "ir/graph.h"
#include "passes/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Partition;

// Launches that reduce the same rows, or the same columns, and read the same values for it become
// one, where none of them waits for the other by way of a third: the values are read once. (Of a
// layer norm's gradient, the two sums over each row; and those of its weight and its bias, over
// each column.) Not where they lie in a cache: beside each other, launches then cost less.
void merge_siblings(const Graph& graph, const FuseOptions& options, Partition& parts);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
