// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(mse_that_would_broadcast, ShapeError) {
  compiled([](const Net& net, In in) {
    // error: mse: shapes differ: a [4,2], b [4,1]
    return mse(net.fc(in["x"]), narrow(in["y"], 1, 0, 1));
  });
}

}  // namespace tensorgrad::testing
