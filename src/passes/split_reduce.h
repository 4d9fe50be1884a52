// SPDX-License-Identifier: MIT
// Cuts long reductions to few results in two.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A launch shares a row among the threads of one workgroup at most, so few long rows leave a GPU
// idle. Such a reduction becomes one of each of `parts` stretches of its longest reduced axis, and
// one of what these give: [.., parts, n/parts, ..] -> [.., parts, ..] -> the result. Where no good
// number of parts divides the axis, its end is padded with what changes nothing. The cut depends on
// the shape alone; equal elements keep their order, so argmax and argmin still give the first.
//
// The same is done, whatever it costs, where one row spans more than `most_bytes` (0: no limit) of
// what it reads: one part after another can be bound, the row cannot.
//
// `always`: each in two, whatever its size, but for the sums that ride in products.
//
// After the algebra and the last cse, which would not know the two halves again; before fuse.
Graph split_reduce(const Graph& graph, std::int64_t most_bytes = 0, bool always = false);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
