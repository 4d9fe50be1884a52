// SPDX-License-Identifier: MIT
// Which values each launch of a program makes and reads, and where they lie: what the plan knew and
// a Program no longer says. For reports and checks; nothing that runs needs it.
#pragma once

#include <map>
#include <vector>

#include "plan/placement.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct LaunchValues {
  int group = -1;               // of the fused graph; -1: a copy at the end of the program
  std::vector<ValueId> stores;  // a copy: the value that is copied
  std::vector<ValueId> reads;   // values in memory, each once
  Place copy_to;
  bool first_part = true, last_part = true;  // of a launch that was cut; all else is the same
};

struct MemoryMap {
  std::map<ValueId, Place> places;     // leaves with storage, and every stored value
  std::vector<LaunchValues> launches;  // as the program's
  bool stores_f16 = true;              // of the options
};

// `program` was planned from `fused` with these options.
MemoryMap memory_map(const Graph& fused, const PlanOptions& options, const Program& program);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
