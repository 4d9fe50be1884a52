// SPDX-License-Identifier: MIT
// libFuzzer: reads a text, possibly compressed, within its limit. May fail with an IoError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kLimit = 1 << 20;
  try {
    const std::string text =
        tensorgrad::read_text_file({std::as_bytes(std::span(data, size)), "fuzz"}, kLimit);
    if (text.size() > kLimit) std::abort();
  } catch (const tensorgrad::IoError&) {  // malformed input
  }
  return 0;
}
