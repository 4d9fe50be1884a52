// SPDX-License-Identifier: MIT
// Conversion between float and IEEE 754 binary16.
#pragma once

#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Exact.
float from_half(std::uint16_t bits);
// Rounds to nearest, ties to even. Values from 65520 on become infinity.
std::uint16_t to_half(float value);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
