// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(cross_entropy_that_ignores_a_distribution, UserError) {
  compiled([](const Net& net, In in) {
    // error: cross_entropy: ignore_index requires i32 targets, got f32
    return cross_entropy(net.fc(in["x"]), in["y"], {.ignore_index = 0});
  });
}

}  // namespace tensorgrad::testing
