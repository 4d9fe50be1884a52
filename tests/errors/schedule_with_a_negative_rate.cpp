// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(schedule_with_a_negative_rate, UserError) {
  // throws: schedule cosine: from: expected a number of at least 0, got -1
  static_cast<void>(Schedule::cosine(-1, 0, 5));
}

}  // namespace tensorgrad::testing
