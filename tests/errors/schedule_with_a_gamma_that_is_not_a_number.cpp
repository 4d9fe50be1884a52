// SPDX-License-Identifier: MIT
#include <cmath>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(schedule_with_a_gamma_that_is_not_a_number, UserError) {
  // throws: schedule exponential: gamma: expected a number of at least 0, got nan
  static_cast<void>(Schedule::exponential(1, std::nan("")));
}

}  // namespace tensorgrad::testing
