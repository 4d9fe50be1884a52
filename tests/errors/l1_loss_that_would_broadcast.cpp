// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(l1_loss_that_would_broadcast, ShapeError) {
  compiled([](const Net& net, In in) {
    // error: l1_loss: shapes differ: a [4,2], b [4,1]
    return l1_loss(net.fc(in["x"]), narrow(in["y"], 1, 0, 1));
  });
}

}  // namespace tensorgrad::testing
