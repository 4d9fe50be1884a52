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

// Whether a thread can be started for one task. In WebAssembly a thread is a worker, which
// JavaScript starts in advance, and all of them belong to the CPU backend.
#ifdef __EMSCRIPTEN__
inline constexpr bool kStartsThreads = false;
#else
inline constexpr bool kStartsThreads = true;
#endif

}  // namespace tensorgrad
