// SPDX-License-Identifier: MIT
// Splits concats of many inputs.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Replaces each concat of more than `most_parts` (at least 2) inputs by a tree of smaller ones. A
// launch binds a buffer for each input of its concat, so this keeps it within the binding limit.
Graph limit_concat(const Graph& graph, int most_parts);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
