// SPDX-License-Identifier: MIT
// Whether this program runs under a sanitizer, where everything takes many times as long.
#pragma once

namespace tensorgrad::testing {

#if defined(TENSORGRAD_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tensorgrad::testing
