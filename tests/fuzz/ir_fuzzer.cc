// SPDX-License-Identifier: MIT
// libFuzzer: parses IR text, optimizes it and runs it on the CPU with little memory. May fail with
// a UserError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensorgrad/error.h"
#include "tensorgrad/train/debug.h"

namespace ir = tensorgrad::ir;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ir::LeafOptions leaves;
  leaves.max_bytes = 1 << 20;
  try {
    static_cast<void>(ir::optimize(text, "fuzz", {}));
    static_cast<void>(ir::run(text, "fuzz", leaves, {.kind = "cpu", .threads = 1}));
  } catch (const tensorgrad::UserError&) {  // malformed input
  }
  return 0;
}
