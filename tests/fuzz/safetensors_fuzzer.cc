// SPDX-License-Identifier: MIT
// libFuzzer: reads a safetensors file, which must be consistent. May fail with an IoError. Not part
// of the build: `./dev fuzz` compiles and runs it, starting with the files in corpus/.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const tensorgrad::StoredFile file =
        tensorgrad::read_safetensors({std::as_bytes(std::span(data, size)), "fuzz"});
    std::size_t total = 0;
    for (const auto& [name, tensor] : file.tensors) {
      std::size_t bytes = tensorgrad::stored_dtype_bytes(tensor.dtype);
      for (const std::int64_t n : tensor.shape) bytes *= static_cast<std::size_t>(n);
      if (bytes != tensor.data.size()) std::abort();
      total += bytes;
    }
    if (total > size || tensorgrad::dump_safetensors(file).empty()) std::abort();
  } catch (const tensorgrad::IoError&) {  // malformed input
  }
  return 0;
}
