// SPDX-License-Identifier: MIT
// Makes the launches of a program bind no more than a device allows.
#pragma once

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct BindingLimits {
  std::int64_t bytes = 0;  // of a binding
  int count = 0;           // of a launch; 0: any
  bool strict = true;      // else what cannot be cut stays as it is
};

// A launch that binds a larger buffer binds the range of it that it touches. If that is still too
// much, what it reads far apart in the buffer gets a binding each; and if that is not enough,
// several launches share its rows, each with ranges of its own. Throws UserError with the op, the
// bytes, the limit and the user's line if one row touches too much and the limits are strict.
void fit_bindings(Program& program, const BindingLimits& most);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
