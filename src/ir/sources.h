// SPDX-License-Identifier: MIT
// Looks through views: which value an operand reads, and at which index.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A value that is not a view, and the map from the linear index of an operand to its own.
struct Source {
  ValueId value = kNoValue;
  IndexMap map;
  bool barrier = false;  // true if one of the views is a barrier
};

Source through_views(const Graph& graph, ValueId id);

// True if a launch computes the node: not a leaf, generator, view or pack.
bool is_computed(const Node& node);

// True if `map`, over rows*cols elements, maps each element to its row number: (r, c) -> r.
bool is_row_number(const IndexMap& map, std::int64_t rows, std::int64_t cols);

// A reduction as a matrix. Rows are the kept axes, columns the reduced ones.
struct ReduceShape {
  std::int64_t rows = 1, cols = 1;
  bool trailing = true;  // reduced axes are last: element (r, c) is the operand's element r * cols
                         // + c
  View order;            // over [kept axes, reduced axes]: element (r, c) -> operand's linear index
};
ReduceShape reduce_shape(const Graph& graph, const Node& reduce);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
