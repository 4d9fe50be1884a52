// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

// Returns the accuracy instead of the loss.
MISTAKE(loss_without_a_gradient, UserError) {
  compiled([](const Net& net, In in) {
    const Tensor right = cast(eq(argmax(net.fc(in["x"]), 1), in["i"]), f32);
    return mean(right);  // error: compile: the loss has no gradient with respect to any parameter
  });
}

}  // namespace tensorgrad::testing
