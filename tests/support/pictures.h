// SPDX-License-Identifier: MIT
// PNG files, made byte by byte.
#pragma once

#include <cstdint>
#include <string>

namespace tensorgrad::testing {

// A chunk: length, type, data, checksum.
std::string png_chunk(const std::string& type, const std::string& data);

// What a PNG says of itself. `colour`: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA.
std::string png_header(std::uint32_t width, std::uint32_t height, int depth, int colour);

// zlib's format.
std::string deflated(const std::string& bytes);

// A whole PNG: its `rows` have `row_bytes` bytes each; `chunks` lie before its data.
std::string png_of(const std::string& header, std::size_t row_bytes, const std::string& rows,
                   const std::string& chunks = "");

// Of 8 bits, `channels` 1 or 3; pixels [height, width, channels].
std::string png_of_pixels(std::uint32_t width, std::uint32_t height, int channels,
                          const std::string& pixels);

// All of one value.
std::string plain_png(std::uint32_t width, std::uint32_t height, int channels,
                      unsigned char value = 100);

}  // namespace tensorgrad::testing
