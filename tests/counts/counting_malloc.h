// SPDX-License-Identifier: MIT
// Counts the allocations of the program and its libraries: malloc() and related functions, which
// every operator new calls.
#pragma once

#include <cstdint>

namespace tensorgrad::testing {

// Only glibc lets a program replace malloc(). Sanitizers have their own.
#if defined(__GLIBC__) && !defined(TENSORGRAD_SANITIZED)
inline constexpr bool kCountsAllocations = true;
#else
inline constexpr bool kCountsAllocations = false;
#endif

std::int64_t allocations();  // so far, by all threads

}  // namespace tensorgrad::testing
