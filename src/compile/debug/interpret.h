// SPDX-License-Identifier: MIT
// Reference interpreter checks used by trainers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// The first node whose result is NaN or infinite although its inputs are finite. `op` is empty if
// there is none.
struct NonFinite {
  std::string op, type;
  std::int64_t element = 0;
  double value = 0;
  SourceLocation location;
};

NonFinite first_non_finite(const Graph& graph,
                           const std::function<std::vector<double>(const Node& leaf)>& leaf);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
