// SPDX-License-Identifier: MIT
// libFuzzer: reads an MBJS file, whose contents must be as large as the input. May fail with an
// IoError. Not part of the build: `./dev fuzz` compiles and runs it, starting with the files in
// corpus/.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tensorgrad/data/mbjs.h"
#include "tensorgrad/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const tensorgrad::MbjsFile file =
        tensorgrad::read_mbjs({std::as_bytes(std::span(data, size)), "fuzz"});
    std::size_t bytes = 12 + (file.version == 1 ? 0 : 4 + (file.layers.size() + 3) / 4 * 4);
    for (const auto& tensor : file.tensors)
      bytes += 4 + tensor.size() * (file.version == 3 ? 2 : 4);
    if (bytes != size) std::abort();
  } catch (const tensorgrad::IoError&) {  // malformed input
  }
  return 0;
}
