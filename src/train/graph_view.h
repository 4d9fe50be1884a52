// SPDX-License-Identifier: MIT
#pragma once

#include "ir/graph.h"
#include "tensorgrad/train/graph_view.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

GraphView make_graph_view(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
