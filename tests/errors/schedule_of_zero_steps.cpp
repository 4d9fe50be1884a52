// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(schedule_of_zero_steps, UserError) {
  // throws: schedule linear: expected at least one step, got 0
  static_cast<void>(Schedule::linear(1, 0, 0));
}

}  // namespace tensorgrad::testing
