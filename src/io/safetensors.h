// SPDX-License-Identifier: MIT
// The header of a safetensors file: where each tensor lies. Everything about the layout is checked
// here, from only the bytes of the header and the size of the file, before any tensor is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // as the reference reader's
inline constexpr std::size_t kLengthBytes = 8;  // the header's length comes first
inline constexpr std::size_t kMaxStoredRank = 64;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  Shape shape;
  std::uint64_t begin = 0;  // from the start of the data, which follows the header
  std::uint64_t end = 0;
  std::uint64_t header_byte = 0;  // in the file: where the entry ends, for messages
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the data, touching each other
  std::map<std::string, std::string> metadata;
  std::uint64_t data_start = 0;  // in the file
};

// Place of `dtype` in the format's list (the reference writer sorts by it); -1 if not known.
int stored_dtype_rank(std::string_view dtype);

// The header's length from the first bytes of a file of `file_bytes` bytes (fewer than eight first
// bytes only if the file has no more). IoError if it cannot be.
std::uint64_t checked_header_length(std::string_view first_bytes, std::uint64_t file_bytes,
                                    std::string_view file);

// Reads `json`, the header of `file`, which has `file_bytes` bytes in all. The entries that come
// back cover the data exactly: no overlap, no hole, no byte left.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t file_bytes,
                                           std::string_view file);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
