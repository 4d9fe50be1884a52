// SPDX-License-Identifier: MIT
#pragma once

#include "tensorgrad/error.h"

namespace tensorgrad::testing {

// Runs an action that may throw UserError.
template <class Action>
void read_or_refuse(const Action& action) {
  try {
    action();
  } catch (const UserError&) {  // malformed input
  }
}

}  // namespace tensorgrad::testing
