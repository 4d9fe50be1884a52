// SPDX-License-Identifier: MIT
// The values that each launch of a program computes and reads, and where they are stored. This is
// known to the plan but not part of a Program. Used only for reports and checks.
#pragma once

#include <map>
#include <vector>

#include "plan/buffer_assignment.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct LaunchValues {
  int group = -1;               // of the fused graph; -1: a copy
  std::vector<ValueId> stores;  // for a copy: the copied value
  std::vector<ValueId> reads;   // values read from memory, each once
  BufferRange copy_to;
  bool first_part = true, last_part = true;  // of a launch that was split; all else is equal
};

struct MemoryMap {
  std::map<ValueId, BufferRange> places;  // leaves with storage, and all stored values
  std::vector<LaunchValues> launches;     // parallel to those of the program
  bool stores_f16 = true;                 // as in the options
};

// Returns the map of `program`, which was planned from `fused` with these options.
MemoryMap memory_map(const Graph& fused, const PlanOptions& options, const Program& program);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
