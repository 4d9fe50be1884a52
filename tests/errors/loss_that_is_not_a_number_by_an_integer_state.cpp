// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_that_is_not_a_number_by_an_integer_state, UserError) {
  auto trainer = compiled(
      [](const Net& net, In in) {
        const Tensor count = state("count", {}, 1, i32);
        set_state("count", count + 1);
        // error: step 2: the loss is nan; the first op to produce NaN or infinity is sqrt (element
        // 0 of f32[] is nan)
        return mean(net.fc(in["x"])) * 0.0 + sqrt(1.0 - cast(count, f32));
      },
      {.optimizer = optim::SGD{}, .detect_nan = true});
  Example example;
  trainer.step(example.feed);
  trainer.step(example.feed);
}

}  // namespace tensorgrad::testing
