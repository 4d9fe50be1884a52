// SPDX-License-Identifier: MIT
// Cuts products whose operands are too large to be bound at once.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// The rows of a product can be shared by several launches, but each of them needs all of b, and its
// part of a; where one of these does not fit into a binding of `most_bytes` and a stretch of k does
// (the weight gradient of a large batch), the product becomes a sum of products over stretches of
// k, each of which adds to the one before.
//
// `always`: each in two, whatever its size.
//
// Before split_reduce, which keeps off the sums that ride in products.
Graph split_product(const Graph& graph, std::int64_t most_bytes, bool always = false);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
