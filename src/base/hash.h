// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns the 64-bit FNV-1a hash of a text.
inline std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
