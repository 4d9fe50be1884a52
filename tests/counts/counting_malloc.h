// SPDX-License-Identifier: MIT
// Counts what the program and the libraries in it allocate: malloc and its kin, to which every
// operator new comes.
#pragma once

#include <cstdint>

namespace tensorgrad::testing {

// Not under sanitizers, which have a malloc of their own, and with glibc alone, which lets a
// program bring one.
#if defined(__GLIBC__) && !defined(TENSORGRAD_SANITIZED)
inline constexpr bool kCountsAllocations = true;
#else
inline constexpr bool kCountsAllocations = false;
#endif

std::int64_t allocations();  // so far, of all threads

}  // namespace tensorgrad::testing
