// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

// The parameter that this objective trains is not at the start of the arena.
MISTAKE(objective_whose_loss_is_not_a_number, UserError) {
  auto objectives = two_objectives();
  objectives[1].options.detect_nan = true;
  objectives[1].loss = [](const Net& net, In in) {
    // error: step 1: the loss is nan; the first op to produce NaN or infinity is log (element 1 of
    // f32[2] is nan)
    return sum(log(*net.fc.bias)) + plain_loss(net, in);
  };
  auto trainer = compiled(objectives);
  const std::vector<float> bias = {1, -1}, x(12), y(8);
  const auto bytes = std::as_bytes(std::span(bias));
  trainer.upload_params({{"fc.bias", {f32, {2}, {bytes.begin(), bytes.end()}}}}, {.partial = true});
  trainer["b"].step({{"x", x}, {"y", y}});
}

}  // namespace tensorgrad::testing
