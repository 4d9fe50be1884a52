// SPDX-License-Identifier: MIT
// Divisors for cutting an axis into equal parts.
#pragma once

#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns the divisor of n in [least, most] that is nearest to `wanted`; in a tie, the smaller one.
// Returns 0 if there is none between wanted / 2 and 3 * wanted / 2.
inline std::int64_t divisor_near(std::int64_t n, std::int64_t wanted, std::int64_t least,
                                 std::int64_t most) {
  for (std::int64_t off = 0; off <= wanted / 2; ++off) {
    for (const std::int64_t parts : {wanted - off, wanted + off}) {
      if (parts >= least && parts <= most && n % parts == 0) return parts;
    }
  }
  return 0;
}

// Returns the smallest divisor of n greater than 1, or 1 if n is 1.
inline std::int64_t least_divisor(std::int64_t n) {
  for (std::int64_t parts = 2; parts < n; ++parts) {
    if (n % parts == 0) return parts;
  }
  return n;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
