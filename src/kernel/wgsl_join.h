// SPDX-License-Identifier: MIT
// Launches as one kernel: of those that run beside each other each has some of its workgroups; of a
// chain each workgroup has a block of every launch. A launch of its own costs a GPU about two
// microseconds, which is more than many of them work.
#pragma once

#include <cstddef>
#include <vector>

#include "kernel/wgsl_writer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// What is dispatched at once: `count` launches of a program from number `first` on.
struct Dispatch {
  std::size_t first = 0, count = 1;
  // Of the kernel: the launch's, or all that its launches have. A buffer that none of them writes
  // may be bound twice, as arrays of different types.
  std::vector<Binding> bindings;
  WgslKernel kernel;
};

// All launches of a program. Those beside each other, and those of a chain, share a kernel where
// that fits the device: if not, the first half of them and the second half are tried.
std::vector<Dispatch> write_dispatches(const Program& program, const WgslOptions& options,
                                       int max_bindings);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
