// SPDX-License-Identifier: MIT
// Bounds the views between a value and its readers.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Copies the value of a view that reads its source through more than 8 windows or 64 views. A
// kernel computes an index for each window, and the later passes look through all views.
Graph limit_views(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
