// SPDX-License-Identifier: MIT
// Fails chosen allocations of this program. Covers malloc and related functions, which also
// implement operator new.
#pragma once

#include <cstdint>

namespace tensorgrad::testing {

// Only with glibc, whose malloc a program can replace.
#ifdef __GLIBC__
inline constexpr bool kFailsAllocations = true;
#else
inline constexpr bool kFailsAllocations = false;
#endif

enum class Failing {
  kOne,   // the allocation with that number
  kRest,  // and all later ones
};

// Fails the allocation `number`, or all from `number` on, until the next call of stop_failing().
// Allocations are counted from 0 over all threads.
void fail_allocation(std::int64_t number, Failing failing);
void stop_failing();

std::int64_t allocations();       // since the start of the program
std::int64_t live_allocations();  // not yet freed

}  // namespace tensorgrad::testing
