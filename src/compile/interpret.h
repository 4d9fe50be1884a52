// SPDX-License-Identifier: MIT
// The reference interpreter, for the questions that a trainer asks of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// The first node that gives NaN or infinity from finite inputs; `op` is empty where none does.
struct NonFinite {
  std::string op, type;
  std::int64_t element = 0;
  double value = 0;
  SourceLocation location;
};

NonFinite first_non_finite(const Graph& graph,
                           const std::function<std::vector<double>(const Node& leaf)>& leaf);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
