// SPDX-License-Identifier: MIT
// Split-K for products with few results and many terms in each.
#pragma once

#include "ir/graph.h"
#include "kernel/gpu_model.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A launch computes each tile of a product in one workgroup. A product with few tiles, such as the
// weight gradient of a narrow layer over many rows, leaves a GPU idle. This pass splits k of such a
// product into parts and sums the partial products:
//
//   [m, k] x [k, n] -> [parts, m, n] -> [m, n]
//
// The last part may be shorter. The depth of a part depends only on the shape
// and on `gpu`.
//
// `always`: splits every product in two, whatever it costs.
//
// Must run before split_reduce, which does not split sums of operands that are fused with a
// product. They are not fused with a split product.
Graph split_k(const Graph& graph, bool always = false, const GpuModel& gpu = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
