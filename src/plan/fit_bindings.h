// SPDX-License-Identifier: MIT
// Makes the launches of a program bind no more than a device allows.
#pragma once

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A launch that binds a larger buffer binds the range of it that it touches; where that is still
// too much, several launches share its rows, each with a range of its own. Throws UserError with
// the op, the bytes, the limit and the user's line where one row alone touches too much.
void fit_bindings(Program& program, std::int64_t most_bytes);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
