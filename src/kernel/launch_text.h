// SPDX-License-Identifier: MIT
// A launch as text for people: what it binds, and its scalar programs instruction by instruction.
#pragma once

#include <string>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Not read back.
std::string print(const Program& program, const Launch& launch);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
