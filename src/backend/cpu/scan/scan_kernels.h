// SPDX-License-Identifier: MIT
// The inner loops of scans over neighboring lines, with the best instruction set of the machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/program.h"

namespace tensorgrad::cpu {

// Layout of the carry of a block of lines: one value per line (f64 for sums and products of f32,
// else a word). For argmax and argmin, indices follow.
inline std::int64_t carry_lines(std::int64_t width) { return (width + 15) / 16 * 16; }
inline std::int64_t carry_bytes(std::int64_t width) { return carry_lines(width) * 12; }
inline std::uint32_t* carry_indices(std::byte* carry, std::int64_t width) {
  return reinterpret_cast<std::uint32_t*>(carry + carry_lines(width) * 8);
}
inline const std::uint32_t* carry_indices(const std::byte* carry, std::int64_t width) {
  return reinterpret_cast<const std::uint32_t*>(carry + carry_lines(width) * 8);
}

// Scans elements t * width + q of `width` lines, for t < steps in ascending order or, with
// `reverse`, in descending order. Writes the state after each element to `out`. `first` is the
// index of t = 0 in its line. May read one vector past the end.
using ScanFn = void (*)(const std::uint32_t* a, const std::uint32_t* b, std::int64_t first,
                        std::int64_t steps, std::int64_t width, bool reverse, std::byte* carry,
                        std::uint32_t* out);

// Returns the kernel for elements of type `dtype`.
ScanFn scan_kernel(ScanOp op, DType dtype);

}  // namespace tensorgrad::cpu
