// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(schedule_of_restarts_that_shrink, UserError) {
  // throws: schedule cosine_restarts: expected a factor of at least 1, got 0
  static_cast<void>(Schedule::cosine_restarts(1, 0, 5, 0));
}

}  // namespace tensorgrad::testing
