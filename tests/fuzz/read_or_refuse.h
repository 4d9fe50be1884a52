// SPDX-License-Identifier: MIT
#pragma once

#include "tensorgrad/error.h"

namespace tensorgrad::testing {

// Reads something, which may be refused with a UserError.
template <class Action>
void read_or_refuse(const Action& action) {
  try {
    action();
  } catch (const UserError&) {
  }
}

}  // namespace tensorgrad::testing
