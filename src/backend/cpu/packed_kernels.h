// SPDX-License-Identifier: MIT
// Elements that lie several in a word, as vector instructions take them out: to be f32, or to be
// multiplied as they come. Chosen once for the best instruction set of the machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorgrad::cpu {

// How elements lie in words: several in one but for kHalf, which lie as two bytes each.
enum class PackedKind : std::uint8_t { kHalf, kBrain, kInt8, kInt4 };
// Elements that share an offset in units of the leaf's elements.
constexpr std::int64_t elements_in_word(PackedKind kind) {
  return kind == PackedKind::kHalf    ? 1
         : kind == PackedKind::kBrain ? 2
         : kind == PackedKind::kInt8  ? 4
                                      : 8;
}

// Elements of a line that have one scale, where scales go by groups.
inline constexpr std::int64_t kPackedGroup = 32;

struct PackedLine {
  const std::byte* data = nullptr;  // the line's first element
  const float* scales = nullptr;    // of its groups, or null: none
};

inline constexpr int kMostPackedLines = 4;

struct PackedKernels {
  // out[i] = element first + i of those that begin at `data`, as f32, i < count; with `scales`
  // times scales[i / kPackedGroup].
  void (*unpack)(PackedKind kind, const std::byte* data, std::int64_t first, std::int64_t count,
                 const float* scales, float* out);

  // sums[i] = sum_k v[k] * element k of line i, scaled by its group, for k < depth, i < count,
  // which is at most kMostPackedLines.
  void (*dots)(PackedKind kind, std::int64_t depth, const float* v, const PackedLine* lines,
               int count, float* sums);
};

const PackedKernels& packed_kernels();

}  // namespace tensorgrad::cpu
