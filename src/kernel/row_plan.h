// SPDX-License-Identifier: MIT
// How a row program goes over its rows: pass by pass.
#pragma once

#include <vector>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Splits the instructions of a row launch into passes over the columns:
// pass p computes the reductions of depth p from reductions of smaller
// depth; the last pass computes what element-level stores need.
struct RowPass {
  std::vector<int> row_before;  // row-level instructions to compute before this pass's loop
  std::vector<int> elements;    // element-level instructions this pass needs, in order
  std::vector<int> reduces;     // kReduce instructions that this pass completes
  std::vector<int> stores;  // element-level stores (indices into Launch::stores); last pass only
};
struct RowPlan {
  std::vector<RowPass> passes;
  std::vector<int> row_after;   // row-level instructions after the last pass's loop
  std::vector<int> row_stores;  // row-level stores, at the very end
};
RowPlan plan_rows(const Launch& launch);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
