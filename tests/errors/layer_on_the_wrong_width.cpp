// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(layer_on_the_wrong_width, ShapeError) {
  compiled([](const Net& net, In in) {
    // error: linear: inner sizes differ: x [4,2], weight [2,3] ([out, in])
    return mean(net.fc(in["y"]));
  });
}

}  // namespace tensorgrad::testing
