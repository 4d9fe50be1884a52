// SPDX-License-Identifier: MIT
// The kernel of sample_tokens(): for each row of logits [rows, tokens], the token that is drawn by
// the row of `uniform` [rows] and `controls` [rows, kSampleControls].
#pragma once

#include <cstdint>
#include <string>

#include "base/sample_token.h"
#include "kernel/opaque_kernel.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct SampleTokensKernel final : OpaqueKernel {
  SampleTokensKernel(std::int64_t count, std::int64_t of) : tokens(of) {
    name = "sample_tokens";
    domain = std::to_string(count) + "x" + std::to_string(of);
    rows = count;
    inputs = {{.size = count * of, .operand = 0},
              {.size = count, .operand = 1},
              {.size = count * kSampleControls, .operand = 2}};
    results = {{count}};
    flops = 4 * count * of;
  }

  std::int64_t tokens;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
