// SPDX-License-Identifier: MIT
// Merges launches into one kernel. Each of several concurrent launches has some of the workgroups.
// In a fused sequence, each workgroup runs one block of every launch. A separate launch costs a GPU
// about two microseconds, which is longer than many launches run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/wgsl/writer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// One dispatch: `count` launches of a program, beginning at launch `first`.
struct Dispatch {
  std::size_t first = 0, count = 1;
  // Bindings of the kernel: those of the launch, or all bindings of its launches. A buffer that is
  // only read may be bound twice, as arrays of different types.
  std::vector<Binding> bindings;
  WgslKernel kernel;

  // Returns 'r' or 'w' per binding, which determines the layout.
  [[nodiscard]] std::string binding_modes() const {
    std::string modes;
    for (const Binding& binding : bindings) modes += binding.mode == BindMode::kRead ? 'r' : 'w';
    return modes;
  }
};

// Writes all launches of a program. Concurrent launches and fused sequences share a kernel if it
// fits the device. If it does not, the first and the second half of them are tried.
std::vector<Dispatch> write_dispatches(const Program& program, const WgslOptions& options,
                                       int max_bindings);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
