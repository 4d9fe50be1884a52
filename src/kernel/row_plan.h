// SPDX-License-Identifier: MIT
// The passes of a row launch over the columns.
#pragma once

#include <vector>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// One pass over the columns. Pass p, counted from 0, computes the reductions of depth p + 1 from
// reductions of smaller depth. The last pass computes what element-level stores need.
struct RowPass {
  std::vector<int> row_before;  // row-level instructions to compute before the loop of this pass
  std::vector<int> elements;    // element-level instructions that this pass needs, in order
  std::vector<int> reduces;     // kReduce instructions that this pass completes
  std::vector<int> stores;      // indices of element-level stores in Launch::stores; last pass only
};
struct RowPlan {
  // The passes of a row launch, in order.
  std::vector<RowPass> passes;
  std::vector<int> row_after;   // row-level instructions after the loop of the last pass
  std::vector<int> row_stores;  // row-level stores, at the end
};
// Splits the instructions of a row launch into passes.
RowPlan plan_rows(const Launch& launch);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
