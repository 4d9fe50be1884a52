// SPDX-License-Identifier: MIT
// Enumerations for attention launches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Output of an attention launch. s = scale * q k^T are the scores, p = exp(s - lse) the weights.
enum class AttentionPart : std::uint8_t {
  kForward,  // o = (keep * p) v, and lse, the logsumexp of each row of s
  kQueries,  // dq = scale * ds k, where ds = p * (keep * (dy v^T) - delta)
  kKeys,     // dk = scale * ds^T q, and dv = (keep * p)^T dy
};
enum class AttentionInput : std::uint8_t { kQ, kK, kV, kDy, kLse, kDelta, kMask, kKeep };
inline constexpr std::size_t kAttentionInputs = 8;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
