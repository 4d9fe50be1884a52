// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_that_is_not_a_scalar, ShapeError) {
  compiled([](const Net& net, In in) {
    const Tensor y = net.fc(in["x"]);
    // error: gradient: the loss must be a scalar, got [4,2]; reduce it with mean() or sum()
    return y * 2.0;
  });
}

}  // namespace tensorgrad::testing
