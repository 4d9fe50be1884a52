// SPDX-License-Identifier: MIT
// Limits the views between a value and its readers.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Materializes views that read their source through more than 8 windows or 64 views. A kernel
// computes an index for each window, and later passes visit all views.
Graph limit_views(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
