// SPDX-License-Identifier: MIT
// Splits long scatters with few results in two.
#pragma once

#include "ir/graph.h"
#include "kernel/gpu_model.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Each result of a scatter checks all indices of its line. A long line with few results, such as
// the gradient of an embedding of few words, leaves a GPU idle and is read many times. This pass
// scatters each of `parts` ranges of the line and sums the partial results:
//
//   [.., count, ..] -> [.., parts, size, ..] -> [.., size, ..]
//
// The number of parts divides the length of the line and depends only on the shape and
// on `gpu`.
//
// `always`: splits every scatter in two or more, whatever it costs.
//
// Must run after the algebraic passes and the last cse, and before fuse.
Graph split_scatter(const Graph& graph, bool always = false, const GpuModel& gpu = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
