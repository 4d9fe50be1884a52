// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(step_for_a_negative_time, UserError) {
  Example good;
  // error: step_for: expected at least 0 seconds, got -1
  good.trainer.step_for(-1, good.feed);
}

}  // namespace tensorgrad::testing
