// SPDX-License-Identifier: MIT
// What the records of attention, and whoever lowers them, know of a node.
#pragma once

#include <cstdint>

#include "ir/op_def.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Sizes and operands of a node of attention, attention_lse, attention_dq or attention_dkv:
// q [.., T, D], k [.., S, D], v [.., S, E]; the backward ones also dy [.., T, E], lse and delta
// [.., T]; last, where attrs say so, a mask [.., T, S] (bool, or f32 to be added) and the factor
// of each weight, keep f32 [.., T, S].
struct AttentionShape {
  AttentionShape(const Shape& q, const Shape& v, const Attrs& attrs, bool backward);

  std::int64_t batch = 1;                                    // all leading axes
  std::int64_t rows = 1, columns = 1, depth = 1, width = 1;  // T, S, D, E
  bool causal = false;
  // Weights may be rounded to f16, as q, k and v are; results are f16, but for lse.
  bool half = false;
  double scale = 1;
  // Numbers of the operands; -1: there is none.
  int dy = -1, lse = -1, delta = -1, mask = -1, keep = -1;
};

// Heads of more than this are not fused: a tile of them would leave no room for anything else.
inline constexpr std::int64_t kWidestHead = 128;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
