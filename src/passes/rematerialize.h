// SPDX-License-Identifier: MIT
// Recomputes large, cheap values for their late readers instead of keeping them.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct RematerializeOptions {
  std::int64_t least_bytes = std::int64_t{1} << 24;  // smaller values are kept
  // Minimum size of what is computed between the early and the late readers, as a multiple of the
  // value's size. With less, the value would not be kept for long.
  std::int64_t much_else = 8;
};

// Handles values that are a few additions and multiplications of operands that are in memory anyway
// at that time: leaves, small values, one large value. Normally such a value is kept from its
// readers in the forward pass to those in the backward pass. If much else is computed in between,
// the late readers get a copy instead. It is computed just before them, behind a barrier so that
// the fuser does not merge it with the original. (Griewank and Walther 2000; "rematerialization" in
// compilers.)
//
// Example: a layer norm keeps its normalized rows, which its own gradient reads. It does not keep
// what its weight and bias turn them into for the following products.
//
// Must be the last pass over nodes: cse() would merge the copy with the original.
Graph rematerialize(const Graph& graph, const RematerializeOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
