// SPDX-License-Identifier: MIT
// Computes large, cheap values again where they are read late, instead of keeping them.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct RematerializeOptions {
  std::int64_t least_bytes = std::int64_t{1} << 24;  // smaller values stay in memory
  // What is made between early and late readers, as a multiple of the value: with less, it would
  // not be kept for long.
  std::int64_t much_else = 8;
};

// A value of a few additions and multiplications of what lies in memory until then anyway (leaves,
// small values, one large value) is kept from where the forward pass reads it to where the backward
// pass does. Where much else is made in between, its late readers read a copy, which is computed
// beside them, behind a barrier so that the fuser does not put it back. So the normalised rows of a
// layer norm are kept, of which its own gradient is made, and not what its weight and bias make of
// them for the products behind it. (Griewank and Walther 2000; "rematerialization" in compilers.)
//
// Last of the passes over nodes: cse() would find the copy equal.
Graph rematerialize(const Graph& graph, const RematerializeOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
