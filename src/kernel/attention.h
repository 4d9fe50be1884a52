// SPDX-License-Identifier: MIT
// The attention kernels: `batch` attentions of `rows` (T) queries by `columns` (S) keys. `depth` is
// the width of q and k, `width` that of v.
//
// Inputs:
// - q, k, v, dy: [batch, T or S, their width]
// - lse, delta: [batch, T]
// - mask (bool, or f32 to be added), keep: [batch, T, S]
//
// Results:
// - kForward: o [batch, T, width] and lse [batch, T], one of which may be missing
// - kQueries: dq
// - kKeys: dk, dv
// - kBackward: dk, dv, and dq as partial sums [batch, dq_parts, T, depth]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernel/opaque_kernel.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Output of an attention launch. s = scale * q k^T are the scores, p = exp(s - lse) the weights.
enum class AttentionPass : std::uint8_t {
  kForward,   // o = (keep * p) v, and lse, the logsumexp of each row of s
  kQueries,   // dq = scale * ds k, where ds = p * (keep * (dy v^T) - delta)
  kKeys,      // dk = scale * ds^T q, and dv = (keep * p)^T dy
  kBackward,  // the results of kKeys and kQueries, from one computation of p and ds
};
enum class AttentionInput : std::uint8_t { kQ, kK, kV, kDy, kLse, kDelta, kMask, kKeep };
inline constexpr std::size_t kAttentionInputs = 8;

inline constexpr std::int64_t kKeysOfPart = 64;

struct AttentionSizes {
  std::int64_t batch = 1;
  std::int64_t rows = 1, columns = 1, depth = 1, width = 1;  // T, S, D, E
  bool causal = false;  // p[i, j] = 0 for j > i, as if a mask were false there
  // True if q, k and v are f16. p and ds may then be rounded to f16, and all results except lse are
  // f16.
  bool half = false;
  double scale = 1;
  // Number of parts of dq in kBackward, which are computed concurrently; 0 in the other launches.
  // Keys belong to parts by chunks of kKeysOfPart. Every other round of chunks is dealt out in
  // reverse, so that all parts take equally long under a causal mask.
  std::int64_t dq_parts = 0;

  [[nodiscard]] std::int64_t chunks() const { return (columns + kKeysOfPart - 1) / kKeysOfPart; }
  [[nodiscard]] std::int64_t rounds() const { return (chunks() + dq_parts - 1) / dq_parts; }
  // Returns the chunk that a part has in a round. In the last round, it may not exist.
  [[nodiscard]] std::int64_t chunk(std::int64_t part, std::int64_t round) const {
    return round * dq_parts + (round % 2 == 0 ? part : dq_parts - 1 - part);
  }
  // Returns the part to which a chunk belongs.
  [[nodiscard]] std::int64_t part_of(std::int64_t chunk) const {
    const std::int64_t place = chunk % dq_parts;
    return chunk / dq_parts % 2 == 0 ? place : dq_parts - 1 - place;
  }
};

struct AttentionKernel final : OpaqueKernel {
  AttentionKernel(AttentionPass pass, const AttentionSizes& sizes,
                  const std::array<int, kAttentionInputs>& operands);

  AttentionPass pass;
  AttentionSizes sizes;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
