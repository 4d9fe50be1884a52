// SPDX-License-Identifier: MIT
// Materialization before fusion.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Adds copies (detach nodes) of values that must be stored but are only a view, a leaf or an
// expression: outputs, updates, the data operand of a gather, and inputs of a pack. Afterwards each
// output, update and pack input is a computed value of its own, in order and complete.
//
// Also copies operands of products so that they are read through one window (View), if the copy is
// not larger than the operand.
Graph materialize(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
