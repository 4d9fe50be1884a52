// SPDX-License-Identifier: MIT
// What a PNG or JPEG says of itself, before anything of it is decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

inline constexpr std::int64_t kMostImageSide = 65'535;  // pixels; what a JPEG can have

struct ImageHeader {
  const char* format = "";             // "PNG" or "JPEG"
  std::int64_t height = 0, width = 0;  // each 1 to kMostImageSide
  int channels = 0;                    // 1: grey, with or without transparency; 3: colour
};

// Goes through the whole file, which must be of one piece: no part of it is missing, checksums are
// right, and Huffman tables of a JPEG have no more than 256 codes, which not every version of the
// decoder looks at. IoError: anything else; it names the file, the byte and what was expected.
ImageHeader read_image_header(std::span<const std::byte> bytes, std::string_view name);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
