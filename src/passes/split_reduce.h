// SPDX-License-Identifier: MIT
// Splits long reductions with few results in two.
#pragma once

#include <cstdint>

#include "ir/graph.h"
#include "kernel/gpu_model.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A launch uses at most one workgroup per row, so a few long rows leave a GPU idle. This pass
// reduces each of `parts` ranges of the longest reduced axis, and then the partial results:
//
//   [.., parts, n/parts, ..] -> [.., parts, ..] -> the result
//
// If no suitable number of parts divides the axis, pads its end with the identity of the reduction.
// The split depends only on the shape and on `gpu`. Equal elements keep their order, so argmax and
// argmin still return the first.
//
// Also splits a reduction, whatever it costs, if one row spans more than `most_bytes` (0: no limit)
// of its operand. A part can be bound separately, a row cannot.
//
// `always`: splits every reduction in two, whatever its size, except sums that are fused with
// products.
//
// Must run after the algebraic passes and the last cse, which do not recognize the two halves, and
// before fuse.
Graph split_reduce(const Graph& graph, std::int64_t most_bytes = 0, bool always = false,
                   const GpuModel& gpu = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
