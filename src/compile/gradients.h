// SPDX-License-Identifier: MIT
// Differentiation for tracing. The pass is in passes/autodiff.h.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

std::vector<ValueId> gradients(Graph& graph, ValueId loss, std::span<const ValueId> wrt);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
