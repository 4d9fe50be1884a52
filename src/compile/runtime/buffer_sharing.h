// SPDX-License-Identifier: MIT
// Buffer sharing among programs on one device that never run at the same time. Pure functions that
// need no device.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct PooledBuffer {
  std::string name;
  std::int64_t bytes = 0;
};

struct BufferPool {
  std::vector<PooledBuffer> buffers;
  std::vector<std::vector<std::size_t>> places;  // [program][buffer]: index in `buffers`
  [[nodiscard]] std::int64_t bytes() const;
};

// Shares buffers among the programs. Parameters, states and data of equal name and size are shared,
// except those named in `own`. Slots hold nothing between runs, so the largest slots of all
// programs are shared, then the second largest, and so on. All other buffers belong to one program.
BufferPool pool_buffers(std::span<const Program* const> programs, const std::set<std::string>& own);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
