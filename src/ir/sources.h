// SPDX-License-Identifier: MIT
// Looking through views: which value an operand really reads, and where in it.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A value that is not a view, and the map from the linear index of the value asked for to its own.
struct Source {
  ValueId value = kNoValue;
  IndexMap map;
  bool barrier = false;  // one of the views is
};

Source through_views(const Graph& graph, ValueId id);

// True where a launch computes it: no leaf, no generator, no view and no pack.
bool is_computed(const Node& node);

// True where `map`, over rows*cols elements, is "the number of the row": element (r, c) -> r.
bool is_row_number(const IndexMap& map, std::int64_t rows, std::int64_t cols);

// A reduction as rows and columns: rows are the kept axes, columns the reduced ones.
struct ReduceShape {
  std::int64_t rows = 1, cols = 1;
  bool trailing = true;  // the reduced axes are the last ones: (r, c) is the operand's linear index
  View order;            // over [kept axes, reduced axes]: element (r, c) -> operand's linear index
};
ReduceShape reduce_shape(const Graph& graph, const Node& reduce);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
