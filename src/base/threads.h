// SPDX-License-Identifier: MIT
#pragma once

namespace tensorgrad {

// False in programs for browsers and node that are built without threads. In these, nothing else
// runs while a function waits for a lock.
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
inline constexpr bool kHasThreads = false;
#else
inline constexpr bool kHasThreads = true;
#endif

}  // namespace tensorgrad
