// SPDX-License-Identifier: MIT
// Builds PNG files byte by byte.
#pragma once

#include <cstdint>
#include <string>

namespace tensorgrad::testing {

// A chunk: length, type, data, checksum.
std::string png_chunk(const std::string& type, const std::string& data);

// The header chunk. `colour`: 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA.
std::string png_header(std::uint32_t width, std::uint32_t height, int depth, int colour);

// Compresses bytes in zlib format.
std::string deflated(const std::string& bytes);

// Returns a complete PNG. `rows` has `row_bytes` bytes per row; `chunks` are inserted before its
// data.
std::string png_of(const std::string& header, std::size_t row_bytes, const std::string& rows,
                   const std::string& chunks = "");

// Returns a PNG of 8 bits per channel, with 1 or 3 channels. Pixels are [height, width, channels].
std::string png_of_pixels(std::uint32_t width, std::uint32_t height, int channels,
                          const std::string& pixels);

// Returns a PNG with all bytes equal to `value`.
std::string plain_png(std::uint32_t width, std::uint32_t height, int channels,
                      unsigned char value = 100);

}  // namespace tensorgrad::testing
