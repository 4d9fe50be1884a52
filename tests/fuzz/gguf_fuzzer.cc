// SPDX-License-Identifier: MIT
// libFuzzer: reads a GGUF file, which must be the same after it is written and read again. Then
// loads it as a model. Both may fail with a UserError. Not part of the build: `./dev fuzz` compiles
// and runs it, starting with the files in corpus/.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "read_or_refuse.h"
#include "tensorgrad/lm/gguf.h"

namespace tg = tensorgrad;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const tg::FileSource source(std::as_bytes(std::span(data, size)), "fuzz");
  tg::testing::read_or_refuse([&] {
    const tg::GgufFile file = tg::read_gguf(source);
    const auto alignment = file.metadata.find("general.alignment");
    if (alignment == file.metadata.end()) {  // otherwise padding may take gigabytes
      std::vector<std::byte> bytes;
      tg::write_gguf(bytes, file);
      std::vector<std::byte> again;  // compares bytes, because values may be NaN
      tg::write_gguf(again, tg::read_gguf(bytes));
      if (again != bytes) std::abort();
    }
    for (const auto& [name, tensor] : file.tensors)
      tg::testing::read_or_refuse([&] { (void)tg::gguf_floats("fuzz", name, tensor); });
  });
  tg::testing::read_or_refuse([&] { (void)tg::lm::load_gguf(source); });
  return 0;
}
