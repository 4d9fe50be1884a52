// SPDX-License-Identifier: MIT
// Differentiation as tracing needs it; the pass itself is passes/autodiff.h.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

std::vector<ValueId> gradients(Graph& graph, ValueId loss, std::span<const ValueId> wrt);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
