// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(schedule_shifted_backwards, UserError) {
  // throws: schedule shift: expected at least 0, got -1
  static_cast<void>(Schedule::shift(-1, 1.0));
}

}  // namespace tensorgrad::testing
