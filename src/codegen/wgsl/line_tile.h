// SPDX-License-Identifier: MIT
// Loads lines of an operand into workgroup memory, as vectors of four, with all threads of a
// workgroup.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {

struct LineTile {
  std::string operand;  // fn OPERAND_line(p, i, at) returns vector `at` of line i
  std::string array;    // in workgroup memory
  int count;            // number of lines
  // Vectors per line, and distance of lines in vectors.
  std::int64_t vectors, pitch;
  int threads;

  [[nodiscard]] int each() const;  // vectors per thread
  // True if all of a thread's loads can be in flight before the first is awaited.
  [[nodiscard]] bool at_once() const;
  // Prefetch of lines [first, first + count) into registers next_OPERANDn: declares them, loads
  // them, and stores them to workgroup memory.
  void declare(Scope& scope) const;
  void fetch(Scope& scope, const std::string& first) const;
  void keep(Scope& scope) const;
  // The whole load: begin() starts the prefetch if at_once(); after end() the lines are in the
  // array.
  void begin(Scope& scope, const std::string& first) const;
  void end(Scope& scope, const std::string& first) const;
  void load(Scope& scope, const std::string& first) const;
};

}  // namespace tensorgrad::wgsl
