// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(schedule_sequence_without_its_milestones, UserError) {
  // throws: schedule sequence: expected one milestone fewer than schedules, got 0 for 2 schedules
  static_cast<void>(Schedule::sequence({1.0, 2.0}, {}));
}

}  // namespace tensorgrad::testing
