// SPDX-License-Identifier: MIT
// Reference interpreter: evaluates a graph node by node in double precision.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct InterpretOptions {
  // Returns the elements of a leaf: a parameter, arena, input, dataset, state or scalar.
  std::function<std::vector<double>(const Node& leaf)> leaf;
  // Called after each node; return false to stop. Use it to step through a model.
  std::function<bool(ValueId id, const RefTensor& value)> visit;
  // Rounds every f32 result to float, so that overflow occurs as on the devices.
  bool round_to_float = false;
};

// Returns the value of every node, or nothing after a stop. Throws InternalError if a leaf has the
// wrong size.
std::vector<RefTensor> interpret(const Graph& graph, const InterpretOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
