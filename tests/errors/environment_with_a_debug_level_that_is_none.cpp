// SPDX-License-Identifier: MIT
#include "errors/mistake.h"
#include "support/sketch.h"

namespace tensorgrad::testing {

MISTAKE(environment_with_a_debug_level_that_is_none, UserError) {
  const ScopedEnv env("TENSORGRAD_DEBUG", "fuse");
  // error: TENSORGRAD_DEBUG: expected a level from 0 to 5, optionally with names as in '3,fuse',
  // got 'fuse'
  compiled(plain_loss);
}

}  // namespace tensorgrad::testing
