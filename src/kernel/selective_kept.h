// SPDX-License-Identifier: MIT
// Layout of the states that selective scans on a GPU save for the backward pass.
#pragma once

#include <set>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns the buffers that store saved states in pairs: two states of a channel are adjacent. These
// are buffers of scans with an even number of states, if only backward passes read the states.
// Maps, as in gradients of gradients, read them in logical order.
std::set<int> paired_states(const Program& program);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
