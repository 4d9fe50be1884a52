// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(schedule_with_falling_milestones, UserError) {
  // throws: schedule multi_step: the milestones must be ascending
  static_cast<void>(Schedule::multi_step(1, {5, 3}, 0.1));
}

}  // namespace tensorgrad::testing
