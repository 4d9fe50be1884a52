// SPDX-License-Identifier: MIT
// Sizes and operands of attention nodes, for the op definitions and for lowering.
#pragma once

#include <cstdint>

#include "ir/op_def.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Sizes and operands of a node of attention, attention_lse, attention_dq or attention_dkv. Operands
// are q [.., T, D], k [.., S, D], v [.., S, E], and for the backward ops dy [.., T, E], lse and
// delta [.., T]. Depending on the attributes, a mask [.., T, S] (bool, or f32 to be added) and the
// factors keep of the weights, f32 [.., T, S], follow.
struct AttentionShape {
  AttentionShape(const Shape& q, const Shape& v, const Attrs& attrs, bool backward);

  std::int64_t batch = 1;                                    // all leading axes
  std::int64_t rows = 1, columns = 1, depth = 1, width = 1;  // T, S, D, E
  bool causal = false;
  // True if q, k and v are f16. Weights may then be rounded to f16, and all results except lse are
  // f16.
  bool half = false;
  double scale = 1;
  // Operand indices; -1 if absent.
  int dy = -1, lse = -1, delta = -1, mask = -1, keep = -1;
};

// Larger heads are not fused: a tile of them would take all workgroup memory.
inline constexpr std::int64_t kWidestHead = 128;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
