// SPDX-License-Identifier: MIT
// Lines of an operand, in vectors of four, that a workgroup brings into its memory together.
#pragma once

#include <cstdint>
#include <string>

#include "kernel/wgsl_parts.h"

namespace tensorgrad::wgsl {

struct LineTile {
  std::string operand;          // fn OPERAND_line(p, i, at) gives vector `at` of line i
  std::string array;            // in workgroup memory
  int count;                    // of lines
  std::int64_t vectors, pitch;  // of a line; from one line to the next
  int threads;

  [[nodiscard]] int each() const;  // vectors of a thread
  // These are so few that all can be on their way before the first is waited for.
  [[nodiscard]] bool at_once() const;
  // What a thread has fetched of lines [first, first + count), and puts down: next_OPERANDn.
  void declare(Scope& scope) const;
  void fetch(Scope& scope, const std::string& first) const;
  void keep(Scope& scope) const;
  // All of it: what can be is fetched at the beginning, and lies in the array at the end.
  void begin(Scope& scope, const std::string& first) const;
  void end(Scope& scope, const std::string& first) const;
  void load(Scope& scope, const std::string& first) const;
};

}  // namespace tensorgrad::wgsl
