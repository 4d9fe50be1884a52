// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_that_is_not_a_number, UserError) {
  auto trainer = compiled(
      [](const Net& net, In in) {
        const Tensor y = net.fc(in["x"]);
        // error: step 2: the loss is nan; the first op to produce NaN or infinity is log (element 5
        // of f32[4,2] is nan)
        return mean(y) * 0.0 + mean(log(in["y"]));
      },
      {.optimizer = optim::SGD{}, .detect_nan = true});
  Example example;
  trainer.step(example.feed);
  example.y[5] = -1;
  trainer.step(example.feed);
}

}  // namespace tensorgrad::testing
