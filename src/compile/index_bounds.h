// SPDX-License-Identifier: MIT
// Which integer inputs are used as indices, and how large they may be.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct IndexBound {
  std::int64_t size = 0;    // the elements must lie in [0, size)
  SourceLocation location;  // of the op that uses them
  std::string op;
  // Which elements: these of every `row` elements; all if there is none.
  std::vector<std::int64_t> columns;
  std::int64_t row = 0;
  // An element of this value is not used as an index.
  std::optional<std::int64_t> except = std::nullopt;
};

// By the name of the input or data leaf. Followed from the index of a gather or scatter back
// through views, concatenations, the draw of a batch and the replacement of one number by 0 (as of
// an ignored target); not through arithmetic and other gathers, whose results are guarded in the
// kernels (zero, or dropped).
std::map<std::string, std::vector<IndexBound>> index_bounds(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
