// SPDX-License-Identifier: MIT
// IEEE 754 binary16 on the host.
#pragma once

#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Exact.
float from_half(std::uint16_t bits);
// To the nearest, ties to even; from 65520 on to infinity.
std::uint16_t to_half(float value);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
