// SPDX-License-Identifier: MIT
// Sizes of blocks of elements.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tensorgrad::cpu {

inline constexpr std::int64_t kMaxBlock = 1024;
inline constexpr std::int64_t kMinBlock = 256;
// Registers of a block should stay in an L1 cache of 32 KiB, together with their sources.
inline constexpr std::int64_t kBlockWords = 6 * 1024;
// If there are fewer groups of rows (or lines) than this, each is divided into several chunks.
inline constexpr std::int64_t kFewGroups = 8;
inline constexpr std::int64_t kChunkElements = 32 * 1024;
inline constexpr std::int64_t kMaxChunks = 64;

// Returns the elements of a block, a power of two, if `registers` registers are live at a time.
inline std::int64_t block_elements(std::int64_t registers) {
  std::int64_t block = kMaxBlock;
  while (block > kMinBlock && block * registers > kBlockWords) block /= 2;
  return block;
}

}  // namespace tensorgrad::cpu
