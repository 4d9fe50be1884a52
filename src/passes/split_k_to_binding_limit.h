// SPDX-License-Identifier: MIT
// Splits products whose operands are too large to bind.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Several launches can share the rows of a product, but each needs all of b and its part of a. If
// one of these exceeds `most_bytes`, the binding limit, but fits for a range of k (the weight
// gradient of a large batch), this pass replaces the product by a sum of products over ranges of k.
// Each adds to the previous sum.
//
// `always`: splits every product in two, whatever its size.
//
// Must run before split_reduce, which does not split sums that are fused with products.
Graph split_k_to_binding_limit(const Graph& graph, std::int64_t most_bytes, bool always = false);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
