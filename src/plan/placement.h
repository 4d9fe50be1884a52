// SPDX-License-Identifier: MIT
// Where each value lies: arenas and states in their own buffers, the rest in slots that values
// share which do not live at the same time.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "plan/plan.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A contiguous place: element `offset` of a buffer whose elements are all of one size.
struct Place {
  int buffer = -1;
  std::int64_t offset = 0;
};

struct Placement {
  std::vector<BufferDecl> buffers;
  std::map<ValueId, Place> places;                // leaves with storage, and every stored value
  std::vector<std::vector<ValueId>> members;      // of each group, in order
  std::vector<int> order;                         // groups in the order they run
  std::set<int> beside, chained;                  // how they go on from the one before them, if so
  std::map<int, std::int64_t> blocks;             // of groups in chains
  std::vector<std::pair<ValueId, Place>> copies;  // after all launches: values to copy into leaves
  std::vector<Port> inputs, outputs;
  std::set<ValueId> ringed;  // values of outputs that have a ring
  bool stores_f16 = true;    // of the options

  [[nodiscard]] DType stored(DType dtype) const { return dtype_in_memory(dtype, stores_f16); }
};

Placement place(const Graph& graph, const PlanOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
