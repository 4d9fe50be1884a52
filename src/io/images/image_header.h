// SPDX-License-Identifier: MIT
// Validates and reads the headers of PNG and JPEG files before decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

inline constexpr std::int64_t kMaxImageSide = 65'535;  // in pixels; the maximum of JPEG

struct ImageHeader {
  const char* format = "";             // "PNG" or "JPEG"
  std::int64_t height = 0, width = 0;  // each from 1 to kMaxImageSide
  int channels = 0;                    // 1: gray, with or without transparency; 3: color
};

// Checks the whole file and returns its properties. Throws IoError, naming the file, the byte and
// what was expected, if a part is missing, a checksum is wrong, or a Huffman table of a JPEG has
// more than 256 codes, which some versions of the decoder do not check.
ImageHeader read_image_header(std::span<const std::byte> bytes, std::string_view name);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
