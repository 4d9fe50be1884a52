// SPDX-License-Identifier: MIT
// Rows are unfiltered, and the data is a single chunk.
#include "support/pictures.h"

#include <zlib.h>

namespace tensorgrad::testing {
namespace {

std::string big_endian_word(std::uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

const Bytef* zlib_bytes(const std::string& text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

}  // namespace

std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string checked = type + data;
  const uLong sum = crc32_z(0, zlib_bytes(checked), checked.size());
  return big_endian_word(static_cast<std::uint32_t>(data.size())) + checked +
         big_endian_word(static_cast<std::uint32_t>(sum));
}

std::string png_header(std::uint32_t width, std::uint32_t height, int depth, int colour) {
  return png_chunk("IHDR", big_endian_word(width) + big_endian_word(height) +
                               static_cast<char>(depth) + static_cast<char>(colour) +
                               std::string(3, '\0'));
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, zlib_bytes(bytes),
           static_cast<uLong>(bytes.size()));
  out.resize(size);
  return out;
}

std::string png_of(const std::string& header, std::size_t row_bytes, const std::string& rows,
                   const std::string& chunks) {
  std::string data;
  for (std::size_t at = 0; at < rows.size(); at += row_bytes) {
    data += '\0' + rows.substr(at, row_bytes);
  }
  return "\x89PNG\r\n\x1a\n" + header + chunks + png_chunk("IDAT", deflated(data)) +
         png_chunk("IEND", "");
}

std::string png_of_pixels(std::uint32_t width, std::uint32_t height, int channels,
                          const std::string& pixels) {
  return png_of(png_header(width, height, 8, channels == 1 ? 0 : 2),
                width * static_cast<std::size_t>(channels), pixels);
}

std::string plain_png(std::uint32_t width, std::uint32_t height, int channels,
                      unsigned char value) {
  return png_of_pixels(width, height, channels,
                       std::string(std::size_t{width} * height * static_cast<std::size_t>(channels),
                                   static_cast<char>(value)));
}

}  // namespace tensorgrad::testing
