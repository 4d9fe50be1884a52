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
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernel/opaque_kernel.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Output of an attention launch. s = scale * q k^T are the scores, p = exp(s - lse) the weights.
enum class AttentionPart : std::uint8_t {
  kForward,  // o = (keep * p) v, and lse, the logsumexp of each row of s
  kQueries,  // dq = scale * ds k, where ds = p * (keep * (dy v^T) - delta)
  kKeys,     // dk = scale * ds^T q, and dv = (keep * p)^T dy
};
enum class AttentionInput : std::uint8_t { kQ, kK, kV, kDy, kLse, kDelta, kMask, kKeep };
inline constexpr std::size_t kAttentionInputs = 8;

struct AttentionSizes {
  std::int64_t batch = 1;
  std::int64_t rows = 1, columns = 1, depth = 1, width = 1;  // T, S, D, E
  bool causal = false;  // p[i, j] = 0 for j > i, as if a mask were false there
  // True if q, k and v are f16. p and ds may then be rounded to f16, and all results except lse are
  // f16.
  bool half = false;
  double scale = 1;
};

struct AttentionKernel final : OpaqueKernel {
  AttentionKernel(AttentionPart part, const AttentionSizes& sizes,
                  const std::array<int, kAttentionInputs>& operands);

  AttentionPart part;
  AttentionSizes sizes;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
