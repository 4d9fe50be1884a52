// SPDX-License-Identifier: MIT
// Numbers in files.
#pragma once

#include <cstdint>
#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Appends the lowest `count` bytes of a number, lowest first. Bytes beyond the eighth are 0.
inline void append_number(std::string& to, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i, value >>= 8U) to += static_cast<char>(value);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
