// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(nll_loss_by_floats, DtypeError) {
  compiled([](const Net& net, In in) {
    // error: nll_loss: targets must be i32, got f32
    return nll_loss(net.fc(in["x"]), in["y"]);
  });
}

}  // namespace tensorgrad::testing
