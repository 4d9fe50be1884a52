// SPDX-License-Identifier: MIT
#include "errors/mistake.h"
#include "support/sketch.h"

namespace tensorgrad::testing {

MISTAKE(environment_with_a_cpu_target_that_is_none, UserError) {
  const ScopedEnv env("TENSORGRAD_CPU_TARGET", "AVX-2");
  // error: TENSORGRAD_CPU_TARGET: unsupported instruction set 'AVX-2'; available: ...
  compiled(plain_loss);
}

}  // namespace tensorgrad::testing
