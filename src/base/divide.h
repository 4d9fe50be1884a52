// SPDX-License-Identifier: MIT
// Integer division of counts.
#pragma once

#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns n / each, rounded up. Both are positive.
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t each) { return (n + each - 1) / each; }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
