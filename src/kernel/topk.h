// SPDX-License-Identifier: MIT
// The kernel of topk(): for each line of `count` elements over [rows, count, post], the places of
// the first k in sort order, i32 [rows, k, post]. Ties are in order of places. NaN is the largest.
#pragma once

#include <cstdint>

#include "kernel/opaque_kernel.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct TopkKernel final : OpaqueKernel {
  TopkKernel(std::int64_t pre, std::int64_t of, std::int64_t after, std::int64_t first, bool down)
      : count(of), post(after), k(first), descending(down) {
    name = "topk";
    domain = std::to_string(pre) + "x" + std::to_string(count) + "x" + std::to_string(post) + "->" +
             std::to_string(k);
    rows = pre;
    inputs = {{.size = pre * count * post, .operand = 0}};
    results = {{pre * k * post}};
    flops = pre * count * post;
  }

  std::int64_t count, post, k;
  bool descending;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
