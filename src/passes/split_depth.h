// SPDX-License-Identifier: MIT
// Cuts products with few results and many terms in each.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A launch gives each tile of a product's results to one workgroup, so that few tiles (the weight
// gradient of a narrow layer over many rows) leave a GPU idle. Such a product becomes one in parts
// of k, of which the last may be shorter, and their sum: [m, k] x [k, n] -> [parts, m, n] -> [m,
// n]. How deep a part is depends on the shape alone.
//
// `always`: each in two or more, whatever it costs.
//
// Before split_reduce, which keeps off the sums that ride in plain products: those over the rows of
// what is cut here do not ride any more.
Graph split_depth(const Graph& graph, bool always = false);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
