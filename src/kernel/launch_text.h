// SPDX-License-Identifier: MIT
// Prints a launch for people: its bindings and its scalar programs, instruction by instruction.
#pragma once

#include <string>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns the text of a launch. There is no parser for it.
std::string print(const Program& program, const Launch& launch);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
