// SPDX-License-Identifier: MIT
// TENSORGRAD_DEBUG=2: what a run's launches cost.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace tensorgrad {

// A line per launch (those whose names TENSORGRAD_DEBUG asks for): microseconds, share of the run,
// GB/s and GFLOP/s by the plan's counts, operations per byte; then the sum.
std::string timing_table(const Program& program, const std::vector<LaunchTiming>& timings);

// "12.3" operations per byte moved; empty where the plan counts none.
std::string intensity_text(const Launch& launch);

}  // namespace tensorgrad
