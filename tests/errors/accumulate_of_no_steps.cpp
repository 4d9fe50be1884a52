// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(accumulate_of_no_steps, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{}, .accumulate = 0};
  // error: compile: accumulate: expected at least one step, got 0
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
