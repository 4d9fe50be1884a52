// SPDX-License-Identifier: MIT
// The oracle: evaluates a graph one node at a time, in double.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct InterpretOptions {
  // The elements of a leaf: parameter, arena, input, data, state or scalar, by its node.
  std::function<std::vector<double>(const Node& leaf)> leaf;
  // After each node; return false to stop. Stepping through a model goes here.
  std::function<bool(ValueId id, const RefTensor& value)> visit;
  // Round every f32 result to float, so that overflow is seen where the devices see it.
  bool round_to_float = false;
};

// The value of every node (empty after a stop). Throws InternalError where a leaf has a wrong size.
std::vector<RefTensor> interpret(const Graph& graph, const InterpretOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
