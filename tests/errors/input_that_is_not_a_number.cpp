// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_that_is_not_a_number, UserError) {
  auto trainer = compiled(plain_loss, {.optimizer = optim::SGD{}, .detect_nan = true});
  Example example;
  example.x[2] = NAN;
  // error: step 1: the loss is nan; the first op to produce NaN or infinity is input 'x' (element 2
  // of f32[4,3] is nan)
  trainer.step(example.feed);
}

}  // namespace tensorgrad::testing
