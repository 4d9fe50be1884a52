// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(schedule_sequence_that_begins_late, UserError) {
  // throws: schedule sequence: the milestones must be ascending and at least 1
  static_cast<void>(Schedule::sequence({1.0, 2.0}, {0}));
}

}  // namespace tensorgrad::testing
