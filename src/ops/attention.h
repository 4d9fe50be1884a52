// SPDX-License-Identifier: MIT
// Sizes and operands of attention nodes, for the op definitions and for lowering.
#pragma once

#include <cstdint>

#include "ir/op_def.h"
#include "kernel/attention.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Sizes and operands of a node of attention, attention_lse or a backward op. Operands are q
// [.., T, D], k [.., S, D], v [.., S, E], and for the backward ops dy [.., T, E], lse and
// delta [.., T]. Depending on the attributes, a mask [.., T, S] (bool, or f32 to be added) and the
// factors keep of the weights, f32 [.., T, S], follow.
struct AttentionShape : AttentionSizes {
  AttentionShape(const Shape& q, const Shape& v, const Attrs& attrs, bool backward);

  // Operand indices; -1 if absent.
  int dy = -1, lse = -1, delta = -1, mask = -1, keep = -1;
};

// Returns true for attention, attention_lse and the backward ops.
bool is_attention(const OpDef& op);

// Larger heads are not fused: a tile of them would take all workgroup memory.
inline constexpr std::int64_t kWidestHead = 128;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
