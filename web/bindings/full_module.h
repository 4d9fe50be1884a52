// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tensorgrad/error.h"

namespace tensorgrad::web {

// Thrown by the core module if the full one is needed. JavaScript then records the function again
// in the full module, if possible.
struct NeedsFullModule : UserError {
  using UserError::UserError;
};

[[noreturn]] inline void needs_full_module(const std::string& call, SourceLocation location) {
  throw NeedsFullModule(call +
                            ": the core module does not have it: set assets.full = true before "
                            "the first call of the library",
                        location);
}

}  // namespace tensorgrad::web
