// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(huber_loss_with_a_delta_of_zero, UserError) {
  compiled([](const Net& net, In in) {
    // error: huber_loss: delta must be more than 0, got 0
    return huber_loss(net.fc(in["x"]), in["y"], 0);
  });
}

}  // namespace tensorgrad::testing
