// SPDX-License-Identifier: MIT
// How long a block of elements is.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tensorgrad::cpu {

inline constexpr std::int64_t kMaxBlock = 1024;
inline constexpr std::int64_t kMinBlock = 256;
// Registers of a block should stay in a first-level cache of 32 KiB, beside what they are loaded
// from.
inline constexpr std::int64_t kBlockWords = 6 * 1024;
// Rows, or lines, are cut up when there are fewer groups of them than this, each of several chunks.
inline constexpr std::int64_t kFewGroups = 8;
inline constexpr std::int64_t kChunkElements = 32 * 1024;
inline constexpr std::int64_t kMostChunks = 64;

// Elements of a block when `registers` of them live at a time: a power of two.
inline std::int64_t block_elements(std::int64_t registers) {
  std::int64_t block = kMaxBlock;
  while (block > kMinBlock && block * registers > kBlockWords) block /= 2;
  return block;
}

}  // namespace tensorgrad::cpu
