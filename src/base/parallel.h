// SPDX-License-Identifier: MIT
// Threads for work that is done once: files to read, shaders to compile, values to draw. What runs
// at every step has threads of its own (backend/cpu/pool.h).
#pragma once

#include <cstddef>
#include <functional>

namespace tensorgrad {

// The cores that this process may use: of the machine, those that its affinity and (on Linux) the
// quota of its control group leave it. At least 1.
int usable_cores();

// Calls work(0) to work(count - 1), each once, on at most `most_threads` threads, the caller's
// among them. When calls throw, no further ones are begun, and what the one of the smallest number
// threw is thrown on once all have ended.
void in_parallel(std::size_t count, std::size_t most_threads,
                 const std::function<void(std::size_t)>& work);

}  // namespace tensorgrad
