// SPDX-License-Identifier: MIT
// Checks the uniformity that WGSL requires: every thread of a workgroup reaches each barrier, and
// every thread of a subgroup each exchange of values. Browsers enforce it, wgpu-native does not.
#pragma once

#include <string>
#include <vector>

namespace tensorgrad::testing {

// Returns true if a shader has barriers or subgroup functions.
bool waits_for_others(const std::string& wgsl);

// Returns a line for each barrier that is under a condition, after a return, or in a loop that
// threads leave, if the condition may differ between threads. At least as strict as WGSL's rules,
// for the WGSL that our writers produce: no switch, no pointers to variables, and each name has one
// meaning in a function.
std::vector<std::string> barriers_not_reached_by_all(const std::string& wgsl);

}  // namespace tensorgrad::testing
