// SPDX-License-Identifier: MIT
// The kernels of nodes whose ops are opaque.
#pragma once

#include <memory>

#include "ir/graph.h"
#include "kernel/opaque_kernel.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns the kernel of a node of kind kOpaque.
std::shared_ptr<const OpaqueKernel> opaque_kernel(const Graph& graph, const Node& node);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
