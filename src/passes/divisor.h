// SPDX-License-Identifier: MIT
// Into how many equal parts to cut an axis.
#pragma once

#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// The divisor of n in [least, most] that is nearest to `wanted`, the smaller of two as near; 0
// where there is none between half of it and half as much again.
inline std::int64_t divisor_near(std::int64_t n, std::int64_t wanted, std::int64_t least,
                                 std::int64_t most) {
  for (std::int64_t off = 0; off <= wanted / 2; ++off) {
    for (const std::int64_t parts : {wanted - off, wanted + off}) {
      if (parts >= least && parts <= most && n % parts == 0) return parts;
    }
  }
  return 0;
}

// The least divisor of n but 1; 1 of 1.
inline std::int64_t least_divisor(std::int64_t n) {
  for (std::int64_t parts = 2; parts < n; ++parts) {
    if (n % parts == 0) return parts;
  }
  return n;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
