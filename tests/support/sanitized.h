// SPDX-License-Identifier: MIT
// True if the program runs under a sanitizer, which slows everything down several times.
#pragma once

namespace tensorgrad::testing {

#if defined(TENSORGRAD_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tensorgrad::testing
