// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_of_f16, DtypeError) {
  compiled([](const Net& net, In in) {
    return sum(cast(net.fc(in["x"]), f16));  // error: gradient: the loss must be f32, got f16[]
  });
}

}  // namespace tensorgrad::testing
