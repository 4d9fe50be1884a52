// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(beta_of_one_while_training, UserError) {
  auto trainer = compiled(plain_loss, {.optimizer = optim::AdamW{.beta1 = optim::adjustable(0.9)}});
  trainer.set("beta1", 1);  // error: beta1: expected at least 0 and less than 1, got 1
}

}  // namespace tensorgrad::testing
