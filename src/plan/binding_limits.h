// SPDX-License-Identifier: MIT
// Splits launches that bind more than a device allows.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct BindingLimits {
  std::int64_t bytes = 0;  // of a binding
  int count = 0;           // of a launch; 0: no limit
  bool strict = true;      // false: a launch that cannot be split is kept
};

// Limits the bindings of all launches, in three steps:
//
// - A launch that binds a larger buffer binds only the range that it accesses.
// - If that is still too much, distant ranges of the buffer get separate bindings.
// - If that is not enough, the rows are divided among several launches, each with its own ranges.
//
// Throws UserError with the op, the bytes, the limit and the location if a single row accesses too
// much and the limits are strict.
void fit_bindings(Program& program, const BindingLimits& most);

// A range of bytes of a buffer; empty if begin == end.
struct ByteRange {
  std::int64_t begin = 0, end = 0;
};
// Returns a range for each binding of a launch that contains all bytes that it accesses through the
// binding, counted from the start of the buffer.
std::vector<ByteRange> accessed_bytes(const Launch& launch);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
