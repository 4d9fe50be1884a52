// SPDX-License-Identifier: MIT
// The inner loops of scans over neighbouring lines, chosen once for the best instruction set of the
// machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/program.h"

namespace tensorgrad::cpu {

// What lines carry from block to block: a value each (a double for sums and products of f32, else a
// word), and behind those an index each, for argmax and argmin.
inline std::int64_t carry_lines(std::int64_t width) { return (width + 15) / 16 * 16; }
inline std::int64_t carry_bytes(std::int64_t width) { return carry_lines(width) * 12; }
inline std::uint32_t* carry_indices(std::byte* carry, std::int64_t width) {
  return reinterpret_cast<std::uint32_t*>(carry + carry_lines(width) * 8);
}
inline const std::uint32_t* carry_indices(const std::byte* carry, std::int64_t width) {
  return reinterpret_cast<const std::uint32_t*>(carry + carry_lines(width) * 8);
}

// Elements t * width + q for t < steps, q < width, of `width` lines: goes through t in order, or
// backwards, and writes what is kept after each; `first` is the place of t = 0 in its line. May
// read a vector past the end.
using ScanFn = void (*)(const std::uint32_t* a, const std::uint32_t* b, std::int64_t first,
                        std::int64_t steps, std::int64_t width, bool reverse, std::byte* carry,
                        std::uint32_t* out);

// `dtype` of the elements.
ScanFn scan_kernel(ScanOp op, DType dtype);

}  // namespace tensorgrad::cpu
