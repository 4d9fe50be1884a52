// SPDX-License-Identifier: MIT
// libFuzzer: reads pictures. First corrects the checksums of a PNG, because the reader would refuse
// almost every input without that. Not part of the build: `./dev fuzz` compiles and runs it,
// starting with the files in corpus/.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "tensorgrad/data/images.h"
#include "tensorgrad/error.h"

namespace {

constexpr std::size_t kSignature = 8, kFrame = 12;  // a chunk without data

std::uint32_t word_at(const std::vector<std::uint8_t>& file, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) word = word << 8 | file[at + i];
  return word;
}

void mend_checksums(std::vector<std::uint8_t>& file) {
  if (file.empty() || file[0] != 0x89) return;
  for (std::size_t at = kSignature; at + kFrame <= file.size();) {
    const std::size_t length = word_at(file, at);
    if (length > file.size() - at - kFrame) return;
    const auto sum = static_cast<std::uint32_t>(crc32_z(0, &file[at + 4], length + 4));
    at += kFrame + length;
    for (std::size_t i = 0; i < 4; ++i)
      file[at - 4 + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> file(data, data + size);
  mend_checksums(file);
  try {
    const tensorgrad::ImageOptions options{.channels = size % 2 == 0 ? 3 : 0, .max_bytes = 1 << 20};
    const tensorgrad::Image image =
        tensorgrad::read_image({std::as_bytes(std::span(file)), "fuzz"}, options);
    const auto pixels = static_cast<std::size_t>(image.height * image.width * image.channels);
    if (image.pixels.size() != pixels) std::abort();
  } catch (const tensorgrad::IoError&) {  // malformed input
  }
  return 0;
}
