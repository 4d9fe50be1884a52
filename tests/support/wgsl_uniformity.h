// SPDX-License-Identifier: MIT
// Whether every thread of a workgroup reaches each barrier of a shader, and each place where those
// of a subgroup give each other values, which WGSL asks for, and browsers hold it to; wgpu-native
// does not.
#pragma once

#include <string>
#include <vector>

namespace tensorgrad::testing {

// Whether a shader has barriers, or functions of subgroups.
bool waits_for_others(const std::string& wgsl);

// Those that stand under a condition, behind a return or in a loop that is left by one, where the
// condition may differ from thread to thread: a line for each. As strict as WGSL's own rules or
// stricter; of the WGSL that our writers use: no switch, no pointers to variables, names that mean
// one thing in a function.
std::vector<std::string> barriers_not_reached_by_all(const std::string& wgsl);

}  // namespace tensorgrad::testing
