// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(schedule_one_cycle_that_never_comes_down, UserError) {
  // throws: schedule one_cycle: pct_start: expected 0 to 1, got 2.000000
  static_cast<void>(Schedule::one_cycle({.peak = 1, .steps = 5, .pct_start = 2}));
}

}  // namespace tensorgrad::testing
