// SPDX-License-Identifier: MIT
#include "errors/mistake.h"
#include "support/sketch.h"

namespace tensorgrad::testing {

MISTAKE(environment_with_threads_that_are_no_number, UserError) {
  const ScopedEnv env("TENSORGRAD_THREADS", "two");
  // error: TENSORGRAD_THREADS: expected a number from 1 to 256, got 'two'
  compiled(plain_loss);
}

}  // namespace tensorgrad::testing
