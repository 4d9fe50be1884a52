// SPDX-License-Identifier: MIT
// Which buffers several programs on one device have in common that never run at the same time.
// Pure, without a device.
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
  std::vector<std::vector<std::size_t>> places;  // of each program, of each of its buffers
  [[nodiscard]] std::int64_t bytes() const;
};

// Parameters, states and data of one name and size are one buffer, but for those named `own`. Slots
// hold nothing between runs: the largest of each program are one, the next ones too, and so on. All
// else is each program's own.
BufferPool pool_buffers(std::span<const Program* const> programs, const std::set<std::string>& own);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
