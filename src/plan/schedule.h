// SPDX-License-Identifier: MIT
// Schedules groups into steps; the groups of a step are concurrent.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "kernel/gpu_model.h"
#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Classes of small work. Their workgroups differ in size.
inline constexpr int kSmallByRows = 1, kSmallOpaque = 2;

// Dependencies and cost of a group.
struct GroupWork {
  std::set<int> before;  // groups that it depends on
  // Class of work that is too small to fill a GPU and may be concurrent with work of the same
  // class; 0: not concurrent.
  int concurrent = 0;
  double microseconds = 0;  // without GpuModel::launch_microseconds
  // Buffers that the launch binds; equal numbers are the same buffer.
  std::set<std::int64_t> buffers;
};

// Returns the steps of the schedule, each a list of concurrent groups. If there is no small work or
// `max_bindings` is 0, each step is one group, in numerical order as far as dependencies allow.
// Returns an empty list if the dependencies have a cycle.
std::vector<std::vector<int>> order_schedule(const std::vector<GroupWork>& groups, int max_bindings,
                                             const GpuModel& gpu = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
