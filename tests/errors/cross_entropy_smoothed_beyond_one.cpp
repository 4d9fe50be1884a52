// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(cross_entropy_smoothed_beyond_one, UserError) {
  compiled([](const Net& net, In in) {
    // error: cross_entropy: label_smoothing must be in [0, 1], got 1.5
    return cross_entropy(net.fc(in["x"]), in["i"], {.label_smoothing = 1.5});
  });
}

}  // namespace tensorgrad::testing
