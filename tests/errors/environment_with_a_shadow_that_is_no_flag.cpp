// SPDX-License-Identifier: MIT
#include "errors/mistake.h"
#include "support/sketch.h"

namespace tensorgrad::testing {

MISTAKE(environment_with_a_shadow_that_is_no_flag, UserError) {
  const ScopedEnv env("TENSORGRAD_SHADOW", "true");
  // error: TENSORGRAD_SHADOW: expected 0 or 1, got 'true'
  compiled(plain_loss);
}

}  // namespace tensorgrad::testing
