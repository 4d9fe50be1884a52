// SPDX-License-Identifier: MIT
// Kernels that unpack elements stored several to a word: to f32, or in a dot product. Uses the best
// instruction set of the machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorgrad::cpu {

// Element formats. kHalf elements are stored individually, two bytes each; others share a 32-bit
// word.
enum class PackedKind : std::uint8_t { kHalf, kBrain, kInt8, kInt4 };
// Returns the number of packed elements per element of the leaf, which is f16 or u32.
constexpr std::int64_t elements_in_word(PackedKind kind) {
  return kind == PackedKind::kHalf    ? 1
         : kind == PackedKind::kBrain ? 2
         : kind == PackedKind::kInt8  ? 4
                                      : 8;
}

// Elements per scale, if scales are per group.
inline constexpr std::int64_t kPackedGroup = 32;

struct PackedLine {
  const std::byte* data = nullptr;  // address of the line's first element
  const float* scales = nullptr;    // scales of its groups, or null
};

inline constexpr int kMaxPackedLines = 4;

struct DequantKernels {
  // out[i] = element first + i at `data`, as f32, for i < count. If `scales` is not null, the
  // element is multiplied by scales[i / kPackedGroup].
  void (*unpack)(PackedKind kind, const std::byte* data, std::int64_t first, std::int64_t count,
                 const float* scales, float* out);

  // Brings v into the order and scale in which dots() multiplies it. Only kInt4 needs this: it
  // multiplies v by a power of two, so that elements below 2^-98 count as zero.
  void (*arrange)(PackedKind kind, std::int64_t depth, float* v);

  // sums[i] = sum_k v[k] * (element k of line i, scaled by its group), for k < depth and i < count.
  // `count` is at most kMaxPackedLines. v was passed to arrange().
  void (*dots)(PackedKind kind, std::int64_t depth, const float* v, const PackedLine* lines,
               int count, float* sums);
};

const DequantKernels& dequant_kernels();

}  // namespace tensorgrad::cpu
