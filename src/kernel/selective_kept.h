// SPDX-License-Identifier: MIT
// How a selective scan on a GPU lays out the states that it keeps for the backward pass.
#pragma once

#include <set>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Buffers in which selective scans that have an even number of states keep them by pairs, both of a
// channel side by side: those of which nobody but backward passes reads any. Where a gradient is
// differentiated again, maps read them, as they are numbered.
std::set<int> paired_states(const Program& program);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
