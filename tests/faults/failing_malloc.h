// SPDX-License-Identifier: MIT
// Fails chosen allocations of this program: malloc and its kin, to which every operator new comes.
#pragma once

#include <cstdint>

namespace tensorgrad::testing {

// Only with glibc, which lets a program bring its own malloc.
#ifdef __GLIBC__
inline constexpr bool kFailsAllocations = true;
#else
inline constexpr bool kFailsAllocations = false;
#endif

enum class Failing {
  kOne,   // the allocation of that number
  kRest,  // it and all later ones
};

// Fails the allocations from `number` on, counted from 0 and over all threads, until the next call
// of stop_failing().
void fail_allocation(std::int64_t number, Failing failing);
void stop_failing();

std::int64_t allocations();       // since the start of the program
std::int64_t live_allocations();  // that were not freed

}  // namespace tensorgrad::testing
