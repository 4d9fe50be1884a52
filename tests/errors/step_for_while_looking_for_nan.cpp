// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(step_for_while_looking_for_nan, UserError) {
  auto trainer = compiled(plain_loss, {.optimizer = optim::SGD{}, .detect_nan = true});
  const Example good;
  // error: step_for: not supported with detect_nan; call step()
  trainer.step_for(1, good.feed);
}

}  // namespace tensorgrad::testing
