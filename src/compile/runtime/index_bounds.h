// SPDX-License-Identifier: MIT
// Finds the integer inputs that are used as indices, and the bounds on their values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct IndexBound {
  std::int64_t size = 0;    // the elements must be in [0, size)
  SourceLocation location;  // of the op that uses them
  std::string op;
  // The elements that are indices: these of every `row` elements; all if empty.
  std::vector<std::int64_t> columns;
  std::int64_t row = 0;
  // An element of this value is not used as an index.
  std::optional<std::int64_t> except = std::nullopt;
};

// Returns the bounds by the name of the input or data leaf. Follows the index of a gather or
// scatter back through views, concatenations, the selection of a batch, and the replacement of one
// number by 0 (such as that of ignored targets). Does not follow arithmetic and other gathers:
// kernels check their results and return zero, or drop the element.
std::map<std::string, std::vector<IndexBound>> index_bounds(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
