// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(ema_decay_of_one, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{}, .ema_decay = 1};
  // error: compile: ema_decay: expected at least 0 and less than 1, got 1
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
