// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(clip_norm_that_is_set_to_zero, UserError) {
  auto trainer = compiled(plain_loss, {.optimizer = optim::SGD{}, .clip_grad_norm = 1});
  trainer.set("clip_grad_norm", 0);  // error: clip_grad_norm: expected more than 0, got 0
}

}  // namespace tensorgrad::testing
