// SPDX-License-Identifier: MIT
// The order in which groups run, and which of them run beside each other.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

inline constexpr double kLaunchMicroseconds = 2.2;  // that a launch costs beside its work (H100)

// Classes of small work: their workgroups have different numbers of threads.
inline constexpr int kSmallByRows = 1, kSmallAttention = 2;

// What the order of a group depends on.
struct GroupWork {
  std::set<int> before;  // groups that must have run
  // Work too small to fill a GPU may run beside other such work, of the same class; 0: alone.
  int beside = 0;
  double microseconds = 0;  // of a large GPU, without what the launch itself costs
  // Of the joined launch: what it binds (equal numbers are one buffer), and how much it moves.
  std::set<std::int64_t> buffers;
};

// Stages, one after the other; the groups of each run beside each other. Without small work, or
// where `max_bindings` is 0, every stage is one group, in the order of their numbers as far as
// `before` allows. Empty where groups wait for each other in a circle.
std::vector<std::vector<int>> order_stages(const std::vector<GroupWork>& groups, int max_bindings);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
